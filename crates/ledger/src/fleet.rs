//! This machine's part of a budget that many machines share.
//!
//! One process holds a lease for the class and writes here how much it allows, and until when. Members need not
//! hear of its end: a call that takes the slow way looks at the clock, and past the end the class has its floor.

use discnice_units::{Moment, Nanos, Rate};

use crate::claim::Claim;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// Bytes a second of a machine that no server has ever admitted to the fleet, and the lowest floor.
pub const LEAST: u64 = 4096;

/// The words of a lease.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fleet {
    /// When the lease ends; zero outside of a fleet, one in a fleet without a lease.
    until: AtomicU64,
    /// Bytes a second until then.
    rate: AtomicU64,
    /// Bytes a second afterwards; zero until a server has told.
    floor: AtomicU64,
    /// Bytes a second of all machines together, as the server told last; zero if it never did.
    cap: AtomicU64,
    /// What the holder reports, in the numbers of the crate `fleet`.
    report: AtomicU32,
    /// The process that holds the lease.
    holder: Claim,
}

impl Fleet {
    /// Returns true if the class shares a budget with other machines.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.until.load(Ordering::Relaxed) != 0
    }

    /// Puts the class into a fleet; it has its floor until it gets a lease. Does nothing in one.
    pub(crate) fn join(&self) {
        // A lost race means that it has joined.
        let _ = self.until.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes the class out of its fleet.
    pub(crate) fn leave(&self) {
        for word in [&self.until, &self.rate, &self.floor, &self.cap] {
            word.store(0, Ordering::Relaxed);
        }
        self.report.store(0, Ordering::Relaxed);
    }

    /// What the class may do past a lease's end.
    #[must_use]
    pub fn floor(&self) -> Rate {
        Rate::per_second(self.floor.load(Ordering::Relaxed).max(LEAST))
    }

    /// What the class may do now; `None` outside of a fleet.
    #[must_use]
    pub fn allowed(&self, now: Moment) -> Option<Rate> {
        match self.until.load(Ordering::Acquire) {
            0 => None,
            until if now.0 < until => Some(self.leased()),
            _ => Some(self.floor()),
        }
    }

    /// The rate of the lease, past its end, too.
    fn leased(&self) -> Rate {
        Rate::per_second(self.rate.load(Ordering::Relaxed).max(LEAST))
    }

    /// What the lease adds to the floor now, and until when; `None` without one.
    #[must_use]
    pub fn lease(&self, now: Moment) -> Option<(u64, Moment)> {
        let until = self.until.load(Ordering::Acquire);
        if now.0 >= until {
            return None;
        }
        Some((self.leased().get().saturating_sub(self.floor().get()), Moment(until)))
    }

    /// For how long the lease is still in force; zero without one.
    #[must_use]
    pub fn lease_left(&self, now: Moment) -> Nanos {
        self.lease(now).map_or(Nanos(0), |(_, until)| until.since(now))
    }

    /// Whether a lease has ended that `rate` may be of.
    #[inline]
    pub(crate) fn has_ended(&self, now: Moment, rate: Rate) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && now.0 >= until && rate > self.floor()
    }

    /// Writes a lease: `grant` beyond `floor` until `until`. A process that is stopped between the stores leaves what
    /// the old or the new lease allowed: the rate is written before a later end, and after an earlier one.
    pub(crate) fn write(&self, grant: u64, floor: u64, until: Moment) {
        let until = until.0.max(1);
        self.until.fetch_min(until, Ordering::Release);
        self.floor.store(floor, Ordering::Relaxed);
        self.rate.store(grant.saturating_add(floor), Ordering::Release);
        // A class that has left meanwhile stays out.
        let (order, load) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.until.fetch_update(order, load, |before| (before != 0).then_some(until));
    }

    /// Ends the lease.
    pub(crate) fn end(&self) {
        let _ = self
            .until
            .fetch_update(Ordering::Release, Ordering::Relaxed, |until| (until > 1).then_some(1));
    }

    /// Bytes a second of all machines together; `None` before a server told.
    #[must_use]
    pub fn cap(&self) -> Option<Rate> {
        match self.cap.load(Ordering::Relaxed) {
            0 => None,
            cap => Some(Rate::per_second(cap)),
        }
    }

    /// Notes what the server told of all machines together.
    pub fn note_cap(&self, cap: u64) {
        self.cap.store(cap, Ordering::Relaxed);
    }

    /// What the holder reported last.
    #[must_use]
    pub fn report(&self) -> u32 {
        self.report.load(Ordering::Relaxed)
    }

    /// Reports how the last call of the server ended.
    pub fn note_report(&self, report: u32) {
        self.report.store(report, Ordering::Relaxed);
    }

    /// Becomes the process that holds the lease, unless another living process holds it.
    pub fn claim(&self, process: u32, lives: impl Fn(u32) -> bool) -> bool {
        self.holder.take(process, lives)
    }

    /// Holds the lease no longer.
    pub fn release(&self, process: u32) {
        self.holder.release(process);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fleet() -> Fleet {
        let zero = || AtomicU64::new(0);
        Fleet {
            until: zero(),
            rate: zero(),
            floor: zero(),
            cap: zero(),
            report: AtomicU32::new(0),
            holder: Claim::default(),
        }
    }

    #[test]
    fn a_lease_ends_by_itself() {
        let fleet = fleet();
        assert_eq!(fleet.allowed(Moment(5)), None, "no fleet");
        fleet.join();
        assert_eq!(fleet.allowed(Moment(5)), Some(Rate::per_second(LEAST)), "never admitted");
        fleet.write(1_000_000, 50_000, Moment(100));
        assert_eq!(fleet.allowed(Moment(99)), Some(Rate::per_second(1_050_000)));
        assert_eq!(fleet.lease(Moment(99)), Some((1_000_000, Moment(100))));
        assert_eq!(fleet.allowed(Moment(100)), Some(Rate::per_second(50_000)));
        assert_eq!(fleet.lease(Moment(100)), None);
        assert!(fleet.has_ended(Moment(100), Rate::per_second(50_001)));
        assert!(!fleet.has_ended(Moment(100), Rate::per_second(50_000)), "applied already");
        fleet.join();
        assert_eq!(
            fleet.allowed(Moment(99)),
            Some(Rate::per_second(1_050_000)),
            "no second joining"
        );
        fleet.end();
        assert_eq!(fleet.allowed(Moment(99)), Some(Rate::per_second(50_000)));
        fleet.leave();
        fleet.end();
        assert_eq!(fleet.allowed(Moment(99)), None);
        // It was asked for before.
        fleet.write(1_000_000, 50_000, Moment(100));
        assert_eq!(fleet.allowed(Moment(99)), None, "a lease on its way");
    }

    #[test]
    fn one_process_holds_it() {
        let fleet = fleet();
        assert!(fleet.claim(7, |_| true) && fleet.claim(7, |_| true));
        assert!(!fleet.claim(8, |_| true) && fleet.claim(8, |_| false), "the first died");
        fleet.release(7);
        assert!(!fleet.claim(9, |_| true));
        fleet.release(8);
        assert!(fleet.claim(9, |_| true));
    }
}
