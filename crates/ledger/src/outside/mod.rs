//! What a watcher outside the processes records about them: which are regulated from outside, how,
//! and why. It lies in the shared block so that the next watcher continues where a killed one
//! stopped.

mod held;
mod reason;

pub use held::{APART, Account, Held, Seen};
pub use reason::{Mechanism, Reason};

use discnice_units::Bytes;

use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// A watcher that has not shown itself for this long, in nanoseconds, is dead or hangs.
const PATIENCE: u64 = 2_000_000_000;

/// In [`Watcher::flags`]: preloaded members are held as soon as they run ahead of their books.
const STRICT: u32 = 1;
/// In [`Watcher::flags`]: the watcher is told of each birth.
const FOLLOWS: u32 = 1 << 1;

//= rate-windows/7-binaries
/// The state of a class's watcher. At most one process watches, however many are ready to.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Watcher {
    process: AtomicU32,
    /// [`STRICT`] and [`FOLLOWS`].
    flags: AtomicU32,
    /// When it last showed itself, nanoseconds of `CLOCK_MONOTONIC`.
    seen: AtomicU64,
    /// When one that was asked for is on its way until, nanoseconds of the same clock.
    coming: AtomicU64,
    /// How many became members, or began to execute a program.
    arrivals: AtomicU32,
    /// What [`Self::arrivals`] was when the watcher last looked for all of them.
    answered: AtomicU32,
    /// The process that starts another watcher when this one is killed.
    keeper: AtomicU32,
    /// Bytes that were charged from outside, also for members that have ended, by [`Mechanism::place`].
    charged: [AtomicU64; 4],
}

impl Watcher {
    /// Notes that a process became a member or is about to execute a program: the watcher looks at
    /// it soon.
    pub fn announce(&self) {
        self.arrivals.fetch_add(1, Ordering::Release);
    }

    /// Changes with each [`Self::announce`].
    #[must_use]
    pub fn arrivals(&self) -> u32 {
        self.arrivals.load(Ordering::Acquire)
    }

    /// Notes that all were looked for that had announced themselves when [`Self::arrivals`] returned this.
    pub fn answer(&self, arrivals: u32) {
        // Of a thousand classes each page that is written counts.
        if self.answered.load(Ordering::Relaxed) != arrivals {
            self.answered.store(arrivals, Ordering::Release);
        }
    }

    /// Returns true if the watcher has looked for all that had announced themselves when [`Self::arrivals`] returned this.
    #[must_use]
    pub fn has_answered(&self, arrivals: u32) -> bool {
        // The number of arrivals starts again at zero some day.
        self.answered.load(Ordering::Acquire).wrapping_sub(arrivals) <= u32::MAX / 2
    }

    /// What was charged for processes that a mechanism makes wait, or nothing.
    fn charged_by(&self, mechanism: Option<Mechanism>) -> Option<&AtomicU64> {
        self.charged.get(Mechanism::place(mechanism)?)
    }

    /// Notes bytes charged to the class from outside, for a process that is made to wait by
    /// `mechanism`.
    pub fn note_charged(&self, mechanism: Option<Mechanism>, bytes: Bytes) {
        if let Some(charged) = self.charged_by(mechanism) {
            charged.fetch_add(bytes.get(), Ordering::Relaxed);
        }
    }

    /// Bytes that were charged so are taken back: they never reached a disk.
    pub fn note_credited(&self, mechanism: Option<Mechanism>, bytes: Bytes) {
        if let Some(charged) = self.charged_by(mechanism) {
            let (order, less) =
                (Ordering::Relaxed, |old: u64| Some(old.saturating_sub(bytes.get())));
            let _ = charged.fetch_update(order, order, less);
        }
    }

    /// Bytes that were charged since the class was made for processes that this makes wait, or another mechanism of its name.
    /// What was charged in no such way the members' own library charged.
    #[must_use]
    pub fn charged(&self, mechanism: Option<Mechanism>) -> Bytes {
        let charged = self.charged_by(mechanism);
        Bytes::new(charged.map_or(0, |charged| charged.load(Ordering::Relaxed)))
    }

    /// Bytes that were charged from outside since the class was made for processes that nothing could hold: what escaped the
    /// limits, though it was counted.
    #[must_use]
    pub fn unheld(&self) -> Bytes {
        self.charged(None)
    }

    /// A watcher was asked for, and is here by `until` (nanoseconds of `CLOCK_MONOTONIC`) or never.
    pub fn await_until(&self, until: u64) {
        self.coming.store(until, Ordering::Relaxed);
    }

    /// Returns true if a watcher was asked for that may still be on its way.
    #[must_use]
    pub fn is_coming(&self, now: u64) -> bool {
        let until = self.coming.load(Ordering::Relaxed);
        // A moment in the far future was scribbled.
        until > now && until - now < PATIENCE
    }

    /// Becomes the watcher, or goes on being it; false while another one lives.
    pub fn claim(&self, process: u32, now: u64, exists: impl Fn(u32) -> bool) -> bool {
        let owner = self.process.load(Ordering::Acquire);
        if owner != process {
            if owner != 0 && !self.is_stale(now) && exists(owner) {
                return false;
            }
            let taken =
                self.process.compare_exchange(owner, process, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_err() {
                return false;
            }
            self.flags.fetch_and(!FOLLOWS, Ordering::Release);
        }
        self.seen.store(now, Ordering::Relaxed);
        true
    }

    /// Notes which process starts another watcher when this one is killed.
    pub fn set_keeper(&self, process: u32) {
        self.keeper.store(process, Ordering::Relaxed);
    }

    /// The process that starts another watcher when one is killed, if one was watching that has such a keeper.
    #[must_use]
    pub fn keeper(&self) -> Option<u32> {
        Some(self.keeper.load(Ordering::Relaxed)).filter(|keeper| *keeper != 0)
    }

    /// Ends being the watcher.
    pub fn resign(&self, process: u32) {
        let _ = self.process.compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns true if the class has a watcher, or had one when that was killed.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.process.load(Ordering::Relaxed) != 0
    }

    /// The watcher's process id, unless it is dead.
    pub fn process(&self, now: u64, exists: impl Fn(u32) -> bool) -> Option<u32> {
        let owner = self.process.load(Ordering::Acquire);
        (owner != 0 && !self.is_stale(now) && exists(owner)).then_some(owner)
    }

    /// Records if the watcher is told of each fork, and so finds the descendants of known processes
    /// without anything in their environment.
    pub fn follow_births(&self, follows: bool) {
        // Of a thousand classes each page that is written counts.
        if (self.flags.load(Ordering::Relaxed) & FOLLOWS != 0) == follows {
            return;
        }
        if follows {
            self.flags.fetch_or(FOLLOWS, Ordering::Release);
        } else {
            self.flags.fetch_and(!FOLLOWS, Ordering::Release);
        }
    }

    /// Returns true if there is a watcher that is told of each fork.
    pub fn follows_births(&self, now: u64, exists: impl Fn(u32) -> bool) -> bool {
        self.flags.load(Ordering::Acquire) & FOLLOWS != 0 && self.process(now, exists).is_some()
    }

    /// From now on holds members with our library, too, as soon as their account runs ahead of what
    /// they charged themselves. Without that they are left to the library until it is plain that it
    /// does not see what they do.
    pub fn be_strict(&self) {
        self.flags.fetch_or(STRICT, Ordering::Relaxed);
    }

    /// Returns true if members with our library are held as soon as they run ahead.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & STRICT != 0
    }

    fn is_stale(&self, now: u64) -> bool {
        // It may have shown itself after the caller read the clock. A moment in the far future was scribbled.
        self.seen.load(Ordering::Relaxed).abs_diff(now) > PATIENCE
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
