//! Copying inside the kernel: copy_file_range(2), sendfile(2), splice(2).

use discnice_budget::Direction;

use crate::host::Host;
use crate::{File, Regulator, Thread, Ticket};

impl<H: Host> Regulator<'_, H> {
    /// Admits copying `count` bytes from `from`, at its own offset if `in_order` and else at one
    /// that is not known, to `to`. Reflinks and holes cost nothing, which only the account knows
    /// afterwards.
    pub fn admit_copy(
        &self,
        thread: &Thread,
        from: (i32, &File),
        in_order: bool,
        to: (i32, &File),
        count: u64,
    ) -> Ticket {
        let mut ticket = Ticket::OPEN;
        if self.is_regulated(from.0, from.1) && from.1.is_regular() {
            ticket.read = self.admit_source(from, in_order, count);
        }
        if self.is_regulated(to.0, to.1) && to.1.is_regular() {
            ticket.write = if ticket.read > 0 { ticket.read } else { count };
            self.reserve_write(thread, ticket.write);
        }
        ticket
    }

    /// Reserves what will be copied and starts reading it, if it is known where; returns how much
    /// that is.
    fn admit_source(&self, from: (i32, &File), in_order: bool, count: u64) -> u64 {
        self.shape(from.0, from.1);
        let size = self.host.status(from.0).map_or(0, |status| status.size);
        let begin = if in_order { self.host.position(from.0) } else { None };
        let length = count.min(size.saturating_sub(begin.unwrap_or(0)));
        if length > 0 {
            self.reserve_and_wait(Direction::Read, length);
            if let Some(begin) = begin {
                self.host.read_ahead(from.0, begin, length);
            }
        }
        length
    }

    /// The longest piece in which a copy should be made, in bytes.
    #[must_use]
    pub fn copy_piece(&self) -> u64 {
        self.write_piece().min(self.class.rule(Direction::Read).slice())
    }

    /// Completes a copy that returned `result`.
    pub fn complete_copy(&self, thread: &Thread, to: (i32, &File), ticket: Ticket, result: isize) {
        let (_, written) = self.settle(thread, ticket);
        if self.class.is_limited() && written > 0 && result > 0 && to.1.is_regular() {
            self.note_dirtied(to.0, to.1, written, None, result as u64);
        }
    }
}
