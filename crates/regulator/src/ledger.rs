//! Enters amounts in a class's meters, in one way for a process that does so itself, before and
//! after a call, and for a watcher that does so afterwards.

use discnice_budget::member::{Books, Charged};
use discnice_budget::{Class, Direction};
use discnice_units::Nanos;

use crate::Ticket;

/// A disk does one operation for at most so many bytes: Linux's common `max_sectors_kb`.
const OPERATION: u64 = 512 << 10;

/// Operations that so many bytes take at least.
pub(crate) const fn operations(bytes: u64) -> u64 {
    bytes.div_ceil(OPERATION)
}

/// When everything charged so far is paid for, of what concerns this direction.
pub(crate) fn frontier(class: &Class, direction: Direction) -> Nanos {
    let meters = [class.total(), class.direction(direction), class.operations()];
    meters.iter().map(|meter| meter.frontier()).max().unwrap_or_default()
}

/// Corrects what `ticket` reserved to what was really moved.
pub(crate) fn settle(class: &Class, now: Nanos, ticket: Ticket, moved: Charged) {
    let Charged { read, written } = moved;
    if ticket.read | ticket.write | read | written == 0 {
        return;
    }
    let pace = class.pace();
    let (reserved, all) = (ticket.read + ticket.write, read.saturating_add(written));
    class.total().settle(pace, now, reserved, all);
    class.direction(Direction::Read).settle(pace, now, ticket.read, read);
    class.direction(Direction::Write).settle(pace, now, ticket.write, written);
    let reserved = operations(ticket.read) + operations(ticket.write);
    class.operations().settle(pace, now, reserved, operations(read) + operations(written));
}

/// Charges from outside what is new in a process's account. Returns the new amount and the time
/// when it is paid for: a watcher that stops the process, and cannot reserve beforehand, resumes it
/// then.
pub fn charge(class: &Class, books: &Books, now: Nanos, account: Charged) -> (Charged, Nanos) {
    let new = books.enter(account);
    // Threads that wait by the old rate look again within half a second.
    let _ = class.mind_lease(now);
    settle(class, now, Ticket::FREE, new);
    (new, paid_at(class, now, new))
}

/// When everything charged to the class is paid for, of the directions in which `moved` went just now.
#[must_use]
pub fn paid_at(class: &Class, now: Nanos, moved: Charged) -> Nanos {
    let Charged { read, written } = moved;
    let of =
        |bytes, way| if bytes > 0 { class.direction(way).paid_at(now, bytes) } else { Nanos(0) };
    let count = operations(read) + operations(written);
    of(read, Direction::Read)
        .max(of(written, Direction::Write))
        .max(class.total().paid_at(now, read.saturating_add(written)))
        .max(class.operations().operations_paid_at(now, count))
}

/// Takes back `bytes` that were charged as written and that the kernel dropped unwritten.
pub fn credit(class: &Class, now: Nanos, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let pace = class.pace();
    class.total().credit(pace, now, bytes);
    class.direction(Direction::Write).credit(pace, now, bytes);
    class.operations().credit(pace, now, operations(bytes));
}
