//! Network traffic: what sockets send and receive (Rate Windows, 5).
//!
//! There is no cache between a program and its network, so what passes is what was asked for, and
//! nothing needs to be predicted: an amount takes its place in the queue, passes when its turn
//! comes, and what did not pass after all is given back. The caller decides what waits and how: a
//! thread that may sleep, or an event loop that must not.

use discnice_ledger::policy::Resource;
use discnice_ledger::primitive::Ordering;
use discnice_units::{Bytes, Moment, Nanos, Rate};

use crate::Regulator;
use crate::host::{Host, Woken};
use crate::pacing::{LONGEST_SLEEP, LONGEST_SLEEP_YIELDING};

/// How much of the rate passes at once: the upper bound of a sleep, which splits large operations
/// (Rate Windows, 3.2). Half of a disk's, because a network has no seeks to save.
const PORTION_TIME: Nanos = Nanos::from_millis(20);
/// Smaller portions are not worth a packet each.
const PORTION_MIN: u64 = 4 << 10;
/// Larger ones gain nothing.
const PORTION_MAX: u64 = 1 << 20;

/// Turns of an event loop that come so shortly after each other are given at once: to wake up costs
/// more than what then passes.
const BEAT_MAX: Nanos = Nanos::from_millis(40);

//= rate-windows/5.2-clocking
/// Direction in which bytes move between the machine and a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Sent.
    Up = 0,
    /// Received.
    Down = 1,
}

impl From<Flow> for Resource {
    fn from(flow: Flow) -> Self {
        match flow {
            Flow::Up => Self::NetUp,
            Flow::Down => Self::NetDown,
        }
    }
}

/// When an amount may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// At once; it is reserved.
    Now,
    /// The amount may pass from this moment on; it is reserved.
    At(Moment),
    /// The queue is too long: ask again then.
    AskAgain(Moment),
}

/// A version of the limits: any change makes a promise of [`Turn::At`] worth asking anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsVersion(pub u32);

impl<H: Host> Regulator<'_, H> {
    /// Returns true if traffic within the machine counts.
    #[must_use]
    pub fn counts_loopback(&self) -> bool {
        self.class.counts_loopback()
    }

    /// Returns true if thresholds are in force only while others are busy.
    #[must_use]
    pub fn yields(&self) -> bool {
        self.class.yields()
    }

    /// The version of the limits now.
    #[must_use]
    pub fn limits(&self) -> LimitsVersion {
        LimitsVersion(self.class.changes().load(Ordering::Acquire))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.host.now()
    }

    /// The most, in bytes, that should pass at once.
    #[must_use]
    pub fn traffic_portion(&self, flow: Flow) -> u64 {
        let time = self.class.pace().given_longest_sleep().unwrap_or(PORTION_TIME);
        self.traffic_rate(flow).units_in(time).clamp(PORTION_MIN, PORTION_MAX)
    }

    /// The lowest limit that is in force for a flow.
    #[must_use]
    pub fn traffic_rate(&self, flow: Flow) -> Rate {
        self.class.meter(Resource::Net).rate().min(self.class.meter(flow.into()).rate())
    }

    /// How long a turn may be put off: unused allowance of that age is not forgotten yet, with a
    /// fifth to spare for a wait that ends late.
    #[must_use]
    pub fn traffic_beat(&self) -> Nanos {
        let rate = self.traffic_rate(Flow::Up).min(self.traffic_rate(Flow::Down));
        let credit = self.class.pace().at(rate).forgets();
        Nanos(credit.0 - credit.0 / 5).min(BEAT_MAX)
    }

    //= rate-windows/5-network
    /// Takes a place in the queue for `bytes`.
    pub fn reserve_traffic(&self, flow: Flow, bytes: u64) -> Turn {
        let (class, pace, now) = (self.class, self.class.pace(), self.host.now());
        self.mind_ceilings(now);
        let (both, one) = (class.meter(Resource::Net), class.meter(flow.into()));
        let soon = now.plus(pace.shortest_sleep()).plus(Nanos(1));
        let Some(first) = both.reserve(pace, now, bytes) else {
            return Turn::AskAgain(both.retry_at(pace, now).max(soon));
        };
        let Some(second) = one.reserve(pace, now, bytes) else {
            both.settle(pace, now, bytes, 0);
            return Turn::AskAgain(one.retry_at(pace, now).max(soon));
        };
        let start = first.max(second);
        if start < soon { Turn::Now } else { Turn::At(start) }
    }

    /// The class's sockets are about to be told from the others' traffic: then `waiting` tells how much has
    /// come for it and has not been charged yet.
    pub fn note_arrived(&self, waiting: impl FnOnce() -> u64) {
        if let Some(board) = self.board
            && self.class.yields()
            && board.is_due(self.host.now())
        {
            board.note_arrived(self.class, Bytes::new(waiting()));
        }
    }

    /// Charges `actual` bytes that passed, of `reserved` that had been reserved.
    pub fn settle_traffic(&self, flow: Flow, reserved: u64, actual: u64) {
        if reserved == 0 && actual == 0 {
            return;
        }
        let (class, pace, now) = (self.class, self.class.pace(), self.host.now());
        class.meter(Resource::Net).settle(pace, now, reserved, actual);
        class.meter(flow.into()).settle(pace, now, reserved, actual);
        if class.yields() {
            self.attend(now);
        }
    }

    /// Sleeps until `until`, unless the limits are no longer `seen` or a signal handler runs.
    pub fn hold(&self, seen: LimitsVersion, until: Moment) -> Woken {
        let begun = self.host.now();
        let (mut until, mut now) = (until, begun);
        let mut woken = Woken::Due;
        while now < until && woken == Woken::Due {
            // A later one was found in memory that was overwritten meanwhile.
            until = until.min(self.traffic_latest(now));
            let yields = self.class.yields();
            let longest = if yields { LONGEST_SLEEP_YIELDING } else { LONGEST_SLEEP };
            woken = self.host.wait(self.class.changes(), seen.0, until.min(now.plus(longest)));
            now = self.note_waiting(now);
            self.mind_ceilings(now);
            if yields {
                self.attend(now);
            }
        }
        self.note_waited(now.since(begun));
        woken
    }

    /// When a wait for any of the network's thresholds ends at the latest.
    fn traffic_latest(&self, now: Moment) -> Moment {
        let resources = [Resource::Net, Resource::NetUp, Resource::NetDown];
        resources.into_iter().map(|one| self.class.meter(one).latest(now)).max().unwrap_or(now)
    }

    /// Notes that the program was held for so long by what we told it.
    pub fn note_held(&self, time: Nanos) {
        self.add_waiting(time);
        self.note_waited(time);
    }

    /// Notes that a wait has lasted since `before`, and may go on: a long one is seen while it lasts. Returns the time.
    pub(crate) fn note_waiting(&self, before: Moment) -> Moment {
        let now = self.host.now();
        self.add_waiting(now.since(before));
        now
    }

    fn add_waiting(&self, time: Nanos) {
        self.books.add_wait(time.0);
        self.class.note_waiting(time);
    }

    /// Notes that a wait has ended, which lasted for so long.
    pub(crate) fn note_waited(&self, time: Nanos) {
        self.class.note_wait(time);
        if let Some(held) = self.held {
            held.set(held.get().saturating_add(time.0));
        }
    }
}
