//! Enters amounts in a class's meters, in one way for a process that does so itself, before and
//! after a call, and for a watcher that does so afterwards.

use discnice_ledger::member::{Books, Charged};
use discnice_ledger::policy::Resource;
use discnice_ledger::{Class, Direction};
use discnice_units::{Moment, Nanos};

use crate::Ticket;

/// A disk does one operation for at most so many bytes: Linux's common `max_sectors_kb`.
const OPERATION: u64 = 512 << 10;
/// A process that is held from outside because all is used up stands for so long, unless more is allowed.
const USED_UP: Nanos = Nanos(3600 * Nanos::SECOND.0);

/// Operations that so many bytes take at least.
pub(crate) const fn operations(bytes: u64) -> u64 {
    bytes.div_ceil(OPERATION)
}

/// When everything charged so far is paid for, of what concerns this direction.
pub(crate) fn frontier(class: &Class, direction: Direction) -> Moment {
    let meters = [class.total(), class.direction(direction), class.operations()];
    meters.iter().map(|meter| meter.frontier()).max().unwrap_or_default()
}

/// Corrects what `ticket` reserved to what was really moved; returns whether that uses up, or does no longer, what the
/// class may move in all.
#[must_use]
pub(crate) fn settle(class: &Class, now: Moment, ticket: Ticket, moved: Charged) -> bool {
    let Charged { read, written } = moved;
    if ticket.read | ticket.write | read | written == 0 {
        return false;
    }
    let pace = class.pace();
    let (reserved, all) = (ticket.read + ticket.write, read.saturating_add(written));
    class.total().settle(pace, now, reserved, all);
    class.direction(Direction::Read).settle(pace, now, ticket.read, read);
    class.direction(Direction::Write).settle(pace, now, ticket.write, written);
    let reserved = operations(ticket.read) + operations(ticket.write);
    class.operations().settle(pace, now, reserved, operations(read) + operations(written));
    class.mind_disk_total()
}

/// Charges from outside what is new in a process's account. Returns the new amount and the time
/// when it is paid for: a watcher that stops the process, and cannot reserve beforehand, resumes it
/// then.
pub fn charge(class: &Class, books: &Books, now: Moment, account: Charged) -> (Charged, Moment) {
    let new = books.enter(account);
    // Threads that wait by the old rate look again within half a second.
    let _ = class.mind_lease(now) | class.mind_advice(now);
    // The watcher sees the change itself, and no other waits that could go on.
    let _ = settle(class, now, Ticket::FREE, new);
    (new, paid_at(class, now, new))
}

/// When everything charged to the class is paid for, of the directions in which `moved` went just now. Where all is used up
/// that the class may move in all, that is not before its limits change.
#[must_use]
pub fn paid_at(class: &Class, now: Moment, moved: Charged) -> Moment {
    let Charged { read, written } = moved;
    if class.is_used_up() && read | written > 0 {
        return now.plus(USED_UP);
    }
    let of = |bytes, way| {
        if bytes > 0 { class.direction(way).paid_at(now, bytes) } else { Moment::FIRST }
    };
    let count = operations(read) + operations(written);
    of(read, Direction::Read)
        .max(of(written, Direction::Write))
        .max(class.total().paid_at(now, read.saturating_add(written)))
        .max(class.operations().operations_paid_at(now, count))
}

/// Charges from outside what has gone through sockets, the bytes sent and received; returns when that is paid for.
pub fn charge_traffic(class: &Class, now: Moment, moved: [u64; 2]) -> Moment {
    let [sent, received] = moved;
    let _ = class.mind_lease(now) | class.mind_advice(now);
    let pace = class.pace();
    class.meter(Resource::Net).settle(pace, now, 0, sent.saturating_add(received));
    class.meter(Resource::NetUp).settle(pace, now, 0, sent);
    class.meter(Resource::NetDown).settle(pace, now, 0, received);
    traffic_paid_at(class, now, moved)
}

/// When everything charged to the class's network thresholds is paid for, of the directions in which `moved` went just now.
#[must_use]
pub fn traffic_paid_at(class: &Class, now: Moment, [sent, received]: [u64; 2]) -> Moment {
    let of = |resource, bytes| match bytes {
        0 => Moment::FIRST,
        bytes => class.meter(resource).paid_at(now, bytes),
    };
    of(Resource::NetUp, sent)
        .max(of(Resource::NetDown, received))
        .max(of(Resource::Net, sent.saturating_add(received)))
}

/// Takes back `bytes` that were charged as written and that the kernel dropped unwritten; returns as [`settle`].
pub fn credit(class: &Class, now: Moment, bytes: u64) -> bool {
    if bytes == 0 {
        return false;
    }
    let pace = class.pace();
    class.total().credit(pace, now, bytes);
    class.direction(Direction::Write).credit(pace, now, bytes);
    class.operations().credit(pace, now, operations(bytes));
    class.mind_disk_total()
}
