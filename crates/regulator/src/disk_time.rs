//! The disk's time: how long pieces of work take it while the class gives way.
//!
//! See [`discnice_ledger::policy::occupancy`]. What was read ahead or written back is waited for: the program
//! is held afterwards anyway, and nothing else tells without privilege how long the disk took.

use discnice_ledger::member::Charged;
use discnice_ledger::policy::occupancy;
use discnice_ledger::{Board, Class, Direction};
use discnice_units::{Moment, Nanos};

use crate::host::Host;
use crate::{Regulator, Thread, Ticket};

/// The page size of the cache.
const PAGE: u64 = 4096;

impl<H: Host> Regulator<'_, H> {
    /// Returns true if the class gives way now, so that its disk work is timed.
    fn times(&self) -> bool {
        self.board.is_some() && self.class.yields() && self.class.is_limited()
    }

    /// The largest piece in which work should be done.
    pub(crate) fn slice(&self, direction: Direction) -> u64 {
        let rule = self.class.rule(direction);
        if !self.class.yields() {
            return rule.slice();
        }
        let longest = rule.long_slice();
        let board = self.board.filter(|_| self.class.is_limited());
        board.map_or(longest, |board| {
            occupancy::piece(longest, self.class.disk_costs(board).overhead)
        })
    }

    /// The moment, if what begins now is to be timed; what it takes is known at [`Self::enter_time`].
    pub(crate) fn begin_piece(&self, thread: &Thread) {
        if self.times() {
            thread.begin(self.host.now());
        }
    }

    /// Reads a range ahead, for which `ticket` was reserved, and settles that; of a class that gives
    /// way, waits for the range and enters how long it took. Returns the bytes read and written.
    pub(crate) fn read_ahead(
        &self,
        thread: &Thread,
        fd: i32,
        (from, length): (u64, u64),
        ticket: Ticket,
    ) -> (u64, u64) {
        self.begin_piece(thread);
        self.host.read_ahead(fd, from, length);
        // Settle before the wait: to the watcher, a process with an account that stays ahead of its
        // books looks like one that escapes.
        let moved = self.settle_untimed(thread, ticket);
        if moved.0 > 0 && self.times() {
            self.host.await_read(fd, from.saturating_add(length).saturating_sub(1) / PAGE * PAGE);
            self.enter_time(thread, Direction::Read, length);
        } else {
            let _ = thread.end();
        }
        moved
    }

    /// Starts writing a range's dirty pages; while the class gives way, waits for them, and enters how
    /// long they took.
    pub(crate) fn write_back_timed(&self, thread: &Thread, fd: i32, range: (u64, u64), bytes: u64) {
        if !self.times() {
            self.write_back_freely(&thread.backlog, fd, range, bytes);
            return;
        }
        let begun = self.host.now();
        self.host.write_back(fd, range.0, range.1);
        self.host.await_written(fd, range, 0);
        self.prolong(Direction::Write, bytes, Some(begun));
    }

    /// Enters how long it took since [`Self::begin_piece`] to move `bytes`.
    pub(crate) fn enter_time(&self, thread: &Thread, direction: Direction, bytes: u64) {
        if self.times() {
            self.prolong(direction, bytes, thread.end());
        }
    }

    /// For how long a piece of `bytes`, as they are as a rule, keeps the next one waiting; `None` unless the class gives way.
    pub(crate) fn time_of_piece(&self, bytes: u64) -> Option<Nanos> {
        let board = self.board.filter(|_| self.times())?;
        let usual = occupancy::usual(self.class.disk_costs(board), 1, bytes);
        Some(occupancy::time_for(usual, usual, self.class.load(board)))
    }

    /// Charges the disk time of a piece of work. If its start was not seen, it counts as long as
    /// others of its size take.
    fn prolong(&self, direction: Direction, bytes: u64, begun: Option<Moment>) {
        let Some(board) = self.board else { return };
        prolong(self.class, board, self.host.now(), (direction, bytes, 1), begun);
    }
}

fn prolong(
    class: &Class,
    board: &Board,
    now: Moment,
    (direction, bytes, pieces): (Direction, u64, u32),
    begun: Option<Moment>,
) {
    let usual = occupancy::usual(class.disk_costs(board), pieces, bytes);
    let took = begun.map_or(usual, |begun| now.since(begun));
    if begun.is_some() {
        class.note_piece(board, took, bytes);
    }
    let time = occupancy::time_for(took, usual, class.load(board));
    class.prolong(direction, (begun.unwrap_or(now), now), bytes, time);
}

/// Charges the disk time of what was just charged from outside, as work of unknown duration; returns true. Returns
/// false if the class does not give way. `waiting` tells how many threads wait for the disk: so many of them have a
/// request there, at places of their own.
pub fn occupy(
    class: &Class,
    board: &Board,
    now: Moment,
    moved: Charged,
    waiting: impl FnOnce() -> u32,
) -> bool {
    if !class.yields() || !class.is_limited() {
        return false;
    }
    if moved.read > 0 {
        let requests = waiting().max(1);
        prolong(class, board, now, (Direction::Read, moved.read, requests), None);
    }
    if moved.written > 0 {
        prolong(class, board, now, (Direction::Write, moved.written, 1), None);
    }
    true
}
