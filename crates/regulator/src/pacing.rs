//! Reserving, waiting, settling.

use discnice_estimator::Estimator;
use discnice_ledger::member::Charged;
use discnice_ledger::policy::{Pace, Resource};
use discnice_ledger::primitive::Ordering;
use discnice_ledger::{Direction, Meter};
use discnice_units::{Bytes, Moment, Nanos, Rate};

use crate::host::{Host, Woken};
use crate::ledger::{self, operations};
use crate::{File, Regulator, Thread, Ticket};

/// No sleep lasts longer without another look at the ledger.
pub(crate) const LONGEST_SLEEP: Nanos = Nanos::from_millis(500);

/// Longest sleep in a class that gives way, as the end of the others' work must be noticed.
pub(crate) const LONGEST_SLEEP_YIELDING: Nanos = Nanos::from_millis(100);

/// Slices a thread may write unasked while it keeps deleting its own output.
const SLICES_AHEAD: u64 = 2;

impl<H: Host> Regulator<'_, H> {
    /// Returns true if the class has debt in this direction.
    pub(crate) fn owes(&self, direction: Direction) -> bool {
        if self.class.is_calm() {
            return false;
        }
        let now = self.host.now();
        let owed = self.class.is_used_up() || self.frontier(direction) > now;
        if !owed {
            self.calm_down(now);
        }
        owed
    }

    /// Returns true if a call on a file would have to wait for what the class owes.
    #[must_use]
    pub fn would_wait(&self, fd: i32, file: &File, direction: Direction) -> bool {
        self.is_regulated(fd, file) && self.owes(direction)
    }

    pub(crate) fn frontier(&self, direction: Direction) -> Moment {
        ledger::frontier(self.class, direction)
    }

    /// Falls to the floor of a budget that many machines share, if its lease has ended, and rises to the thresholds, if
    /// what the user's own policy said has.
    pub(crate) fn mind_ceilings(&self, now: Moment) {
        self.tell(self.class.mind_lease(now) | self.class.mind_advice(now));
    }

    fn calm_down(&self, now: Moment) {
        let (class, pace) = (self.class, self.class.pace());
        class.total().calm_down(pace, now);
        class.direction(Direction::Read).calm_down(pace, now);
        class.direction(Direction::Write).calm_down(pace, now);
        class.operations().calm_down(pace, now);
    }

    /// Takes a place in the queue for `bytes` and waits for it.
    pub(crate) fn reserve_and_wait(&self, direction: Direction, bytes: u64) {
        let now = self.host.now();
        self.mind_ceilings(now);
        let now = self.take_turns(self.class.total(), bytes, now);
        let now = self.take_turns(self.class.direction(direction), bytes, now);
        let (meter, count) = (self.class.operations(), operations(bytes));
        self.wait_for(meter, Meter::reserve_operations, count, now);
        self.wait_for_more();
    }

    /// Waits for a meter of bytes; returns the time afterwards.
    ///
    /// While others wait as well, a large piece takes several turns, so that a member does not get more of the class
    /// because its pieces are larger.
    fn take_turns(&self, meter: &Meter, bytes: u64, mut now: Moment) -> Moment {
        let pace = self.class.pace();
        let (mut rest, mut turn) = (bytes, bytes);
        if meter.frontier() > now {
            turn = meter.turn(pace).min(bytes);
        }
        loop {
            now = self.wait_for(meter, Meter::reserve, turn, now);
            rest -= turn;
            if rest == 0 || meter.rate().is_unlimited() {
                return now;
            }
            // What is given up is reserved in full as well: all of it will be taken back.
            let last = self.host.is_abandoned() || !meter.is_waited_for(pace, now, turn);
            if last && meter.reserve(pace, now, rest).is_some() || self.host.is_abandoned() {
                return now;
            }
            turn = turn.min(rest);
        }
    }

    /// Waits for `meter` alone, one threshold of bytes or operations; returns the time afterwards.
    pub(crate) fn wait_for(
        &self,
        meter: &Meter,
        reserve: impl Fn(&Meter, Pace, Moment, u64) -> Option<Moment>,
        amount: u64,
        mut now: Moment,
    ) -> Moment {
        let pace = self.class.pace();
        let shortest = pace.shortest_sleep();
        while !meter.rate().is_unlimited() {
            if let Some(start) = reserve(meter, pace, now, amount) {
                return self.wait_until(start, meter, now).unwrap_or(start);
            }
            let retry = meter.retry_at(pace, now).max(now.plus(shortest).plus(Nanos(1)));
            match self.wait_until(retry, meter, now) {
                Some(then) => now = then,
                None => return retry,
            }
        }
        now
    }

    /// Waits while all is used up that the class may move in all, which only a change of its limits, or a file that is
    /// deleted unwritten, ends.
    fn wait_for_more(&self) {
        if !self.class.is_used_up() {
            return;
        }
        let begun = self.host.now();
        let mut now = begun;
        while self.class.is_used_up() {
            let seen = self.class.changes().load(Ordering::Acquire);
            let woken = self.host.wait(self.class.changes(), seen, now.plus(LONGEST_SLEEP));
            now = self.note_waiting(now);
            self.tell(self.class.mind_disk_total());
            if woken == Woken::Abandoned {
                break;
            }
        }
        self.note_waited(now.since(begun));
    }

    /// Wakes those that wait by the limits, if these have `changed`.
    fn tell(&self, changed: bool) {
        if changed {
            self.host.wake_all(self.class.changes());
        }
    }

    /// Waits until what is paid for then is paid for.
    pub(crate) fn wait_until_paid(&self, at: Moment) {
        let _ = self.wait_until(at, self.class.total(), self.host.now());
    }

    /// When a wait for any of the class's thresholds ends at the latest.
    fn latest(&self, now: Moment) -> Moment {
        let class = self.class;
        let ways = [Direction::Read, Direction::Write].map(|way| class.direction(way));
        let bytes = ways.into_iter().chain([class.total()]).map(|meter| meter.latest(now));
        let calls = [class.operations(), class.meter(Resource::Metadata)];
        let calls = calls.into_iter().map(|meter| meter.operations_latest(now));
        bytes.chain(calls).max().unwrap_or(now)
    }

    /// Sleeps from `begun`, the current time, until `start`, which moves if the meter's rate is
    /// changed meanwhile. Returns the time afterwards, or `None` if the wait was abandoned.
    fn wait_until(&self, mut start: Moment, meter: &Meter, mut begun: Moment) -> Option<Moment> {
        let (mut now, mut abandoned) = (begun, false);
        if start <= begun.plus(self.class.pace().shortest_sleep()) {
            return Some(now);
        }
        let mut rate = meter.rate();
        while now < start {
            let seen = self.class.changes().load(Ordering::Acquire);
            let current = meter.rate();
            if current != rate {
                start = now.plus(stretched(start.since(now), rate, current));
                rate = current;
                continue;
            }
            // A later one was found in memory that was overwritten meanwhile.
            start = start.min(self.latest(now));
            let yields = self.class.yields();
            let longest = if yields { LONGEST_SLEEP_YIELDING } else { LONGEST_SLEEP };
            let until = start.min(now.plus(longest));
            // A signal handler that ran changes nothing: disk I/O is not interruptible either.
            let woken = self.host.wait(self.class.changes(), seen, until);
            let then = self.note_waiting(now);
            if then < now {
                // The clock was set back: the rest of the wait is as long as it was.
                (start, begun) = (then.plus(start.since(now)), then.minus(now.since(begun)));
            }
            now = then;
            self.mind_ceilings(now);
            abandoned = woken == Woken::Abandoned;
            if abandoned {
                break;
            }
            if yields {
                self.attend(now);
            }
        }
        self.note_waited(now.since(begun));
        (!abandoned).then_some(now)
    }

    /// Enters what the kernel charged since the last look and settles it, or the prediction where
    /// that is trusted more, against the ticket; returns the bytes read and written.
    pub(crate) fn settle(&self, thread: &Thread, ticket: Ticket) -> (u64, u64) {
        let moved = self.settle_untimed(thread, ticket);
        if moved.0 > 0 {
            self.enter_time(thread, Direction::Read, moved.0);
        } else {
            let _ = thread.end();
        }
        moved
    }

    /// Settles a ticket for work that continues, without ending its timing.
    pub(crate) fn settle_untimed(&self, thread: &Thread, ticket: Ticket) -> (u64, u64) {
        let new = self.judge(ticket.forecast, self.books.enter(self.host.account()));
        let missed = new.read > 0;
        thread.note_look(missed);
        self.publish(thread);
        thread.writes.note_dirtied(new.written);
        if !missed && self.class.estimation().estimator() != Estimator::Account {
            thread.switches.note_both(self.host.switches());
        }
        thread.outcomes.add(ticket.read + ticket.write, new.read.saturating_add(new.written));
        self.settle_as(ticket, new.read, new.written);
        if self.board.is_some() || self.class.yields() {
            self.attend(self.host.now());
        }
        (new.read, new.written)
    }

    /// Adds the thread's calls to the class's counts by reason.
    pub fn publish(&self, thread: &Thread) {
        thread.tally.take(|why, count| self.class.passed().add(H::BY, why, count));
    }

    /// Settles a ticket by what the call is known to have cost.
    pub fn settle_as(&self, ticket: Ticket, read: u64, written: u64) {
        if ticket.read | ticket.write | read | written != 0 {
            let moved = Charged { read, written };
            self.tell(ledger::settle(self.class, self.host.now(), ticket, moved));
        }
    }

    /// Looks at the account outside of any call, for example when a program starts or ends.
    pub fn look(&self, thread: &Thread) {
        let _ = self.settle(thread, Ticket::FREE);
        self.count_operations(thread);
    }

    /// Looks at the account before a program exits or calls exec. What its thread deleted before it
    /// was written is credited; the thread may have run ahead for it, or the credit was not looked
    /// for while the class owed nothing.
    pub fn look_at_end(&self, thread: &Thread) {
        let removed = thread.deletions.take_removal();
        if (removed || thread.deletions.are_known()) && !self.class.predicts() {
            self.credit_cancelled(thread);
        }
        self.look(thread);
    }

    /// Waits until the class owes nothing in either direction. Makes a program pay for I/O that was
    /// seen too late to wait before it (page faults while the program was loaded).
    pub fn wait_for_debt(&self) {
        for direction in [Direction::Read, Direction::Write] {
            if self.class.is_limited() && self.owes(direction) {
                self.reserve_and_wait(direction, 0);
            }
        }
    }

    /// Settles what page faults have read, which no call announces, and waits until that is paid for.
    pub fn pay_for_faults(&self, thread: &Thread) {
        let (read, _) = self.settle(thread, Ticket::FREE);
        if read > 0 && self.class.is_limited() && self.owes(Direction::Read) {
            self.reserve_and_wait(Direction::Read, 0);
        }
    }

    /// Credits writes that the kernel dropped before they reached the disk. If that covers the
    /// class's whole debt, the thread may write some more before it asks again.
    pub(crate) fn credit_cancelled(&self, thread: &Thread) {
        let bytes = self
            .host
            .cancelled()
            .map_or(0, |cancelled| thread.deletions.enter_cancelled(cancelled));
        self.class.take_back_dirty(Bytes::new(bytes));
        // What was not charged yet cannot be taken back: no more than a moment's credit is kept.
        let _ = self.settle(thread, Ticket::FREE);
        self.credit(bytes);
        let ahead = bytes > 0 && !self.owes(Direction::Write);
        let slices = if ahead { SLICES_AHEAD } else { 0 };
        thread.deletions.allow(self.class.rule(Direction::Write).slice().saturating_mul(slices));
    }

    /// Takes back what was charged and will not be written.
    pub(crate) fn credit(&self, bytes: u64) {
        self.tell(ledger::credit(self.class, self.host.now(), bytes));
    }
}

/// `rest` of a wait at the old rate, at the new one.
fn stretched(rest: Nanos, old: Rate, new: Rate) -> Nanos {
    if new.is_unlimited() || old.is_unlimited() {
        Nanos(0)
    } else {
        new.time_for(old.units_in(rest))
    }
}
