//! The countdown to the next look at the account.

use core::cell::Cell;

/// Calls too fast to look at after which the thread looks all the same: what a call started behind
/// its back (a page fault, an asynchronous read-ahead) is then found soon.
pub(super) const CALLS: u32 = 256;
/// Interval at which calls on names and directories are timed while all are found cached: what an
/// untimed one has read, a few blocks, is found by the next timed one.
pub(super) const TIMED: u32 = 4;
/// Bytes moved by fast calls after which the account is read.
const BYTES: u32 = 1 << 20;

/// Amount that may pass between looks without a limit. Each call adds its bytes, up to a maximum,
/// and a fixed part.
const UNLIMITED: u32 = 16 << 20;
const UNLIMITED_CALL: u32 = 16 << 10;
const UNLIMITED_MOST: usize = 64 << 10;

/// Cycles of the time-stamp counter in which no call can have waited for a disk, nor filled a
/// read-ahead window: at 1.6 to 5 GHz this is 2.5 to 8 microseconds. A cached 4 KiB read takes 0.2
/// to 0.4, but now and then a few, when a cache line or the processor is shared; a tighter bound
/// makes every sixth read of small cached files a look.
pub(super) const FAST: u64 = 12_288;
/// Cycles allowed for calls on names and directories: they wait for what they miss, and creating or
/// deleting a name takes tens of thousands of cycles by itself.
const FAST_METADATA: u64 = 65_536;
/// Bytes copied per cycle at the slowest speed still likely to be a copy in memory.
const BYTES_PER_CYCLE: u64 = 4;

/// Why the account must be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The call took longer than one that finds everything cached.
    Slow,
    /// The call waited.
    Waited,
    /// Enough calls have passed since the last look.
    Calls,
    /// Enough bytes have been read or copied since the last look.
    Bytes,
    /// Enough bytes have been written since the last look.
    Written,
    /// The metadata operations that passed must be counted first.
    Names,
}

/// Counts what has passed since the last look.
#[derive(Debug, Default)]
pub struct Countdown {
    calls: Cell<u32>,
    bytes: Cell<u32>,
    /// Amount that passed in a class without a limit.
    unlimited: Cell<u32>,
    /// Set if the last call that was due for a look took longer than one that finds everything cached.
    slow: Cell<bool>,
}

impl Countdown {
    //= discnice/5.3-ask-seldom
    /// Counts a call that moved `bytes` in `cycles`; returns why the account must be read now.
    /// Time serves as a covert channel (Gray-Box Systems, 4.1), the account as the truth.
    #[inline(always)]
    pub fn count(&self, cycles: u64, bytes: isize) -> Option<Due> {
        let moved = bytes.max(0) as u64;
        let calls = self.calls.get() + 1;
        let total = self.bytes.get().saturating_add(moved as u32);
        self.calls.set(calls);
        self.bytes.set(total);
        let slow = cycles > FAST + moved / BYTES_PER_CYCLE;
        if !(slow || calls >= CALLS || total >= BYTES) {
            return None;
        }
        self.slow.set(slow);
        Some(match (slow, calls >= CALLS) {
            (true, _) => Due::Slow,
            (false, true) => Due::Calls,
            (false, false) => Due::Bytes,
        })
    }

    /// Counts a call on names or directories that took `cycles`; returns why the account must be
    /// read now.
    #[inline(always)]
    pub fn count_metadata(&self, cycles: u64) -> Option<Due> {
        let calls = self.calls.get() + 1;
        self.calls.set(calls);
        if !(cycles > FAST_METADATA || calls >= CALLS) {
            return None;
        }
        Some(if calls >= CALLS { Due::Calls } else { Due::Slow })
    }

    /// Counts a call that waited so often; returns why the account must be read now.
    pub(super) fn count_waits(&self, waited: u32) -> Option<Due> {
        let calls = self.calls.get().saturating_add(1);
        self.calls.set(calls);
        if !(waited > 0 || calls >= CALLS) {
            return None;
        }
        Some(if calls >= CALLS { Due::Calls } else { Due::Waited })
    }

    //= rate-windows/4-no-overhead
    /// Counts a call in a class without a limit that moves at most `count` bytes. As it is never
    /// made to wait, it is only counted, and the account is read now and then.
    #[inline(always)]
    pub fn count_unlimited(&self, count: usize) -> Option<Due> {
        let amount = UNLIMITED_CALL + count.min(UNLIMITED_MOST) as u32;
        let unlimited = self.unlimited.get().wrapping_add(amount);
        self.unlimited.set(unlimited);
        if unlimited < UNLIMITED { None } else { Some(Due::Calls) }
    }

    /// Returns true if the next call on names may pass without being timed, if all is cached.
    #[inline(always)]
    #[must_use]
    pub fn allows_untimed(&self) -> bool {
        let calls = self.calls.get();
        !calls.is_multiple_of(TIMED) && calls < CALLS
    }

    /// Counts a call that is not timed.
    #[inline(always)]
    pub fn count_untimed(&self) {
        self.calls.set(self.calls.get().wrapping_add(1));
    }

    /// Returns true if the call that is due for a look took longer than one that finds everything
    /// cached.
    pub(crate) fn was_slow(&self) -> bool {
        self.slow.get()
    }

    /// Begins anew, after a look.
    pub(super) fn restart(&self) {
        self.calls.set(0);
        self.bytes.set(0);
        self.unlimited.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= discnice/5.3-ask-seldom
    #[test]
    fn slow_many_or_large_calls_are_looked_at() {
        let countdown = Countdown::default();
        assert_eq!(countdown.count(900, 4096), None);
        assert_eq!(countdown.count(20_000, 4096), Some(Due::Slow));
        assert_eq!(countdown.count(15_000, 65_536), None, "copying 64 KiB may take that long");
        countdown.restart();
        let fast = |_: &u32| countdown.count(900, 1).is_none();
        assert_eq!((0..2 * CALLS).take_while(fast).count(), CALLS as usize - 1);
        countdown.restart();
        assert_eq!(countdown.count(0, 1 << 20), Some(Due::Bytes));
    }

    //= rate-windows/4-no-overhead
    #[test]
    fn what_passes_without_a_limit_is_due_after_calls_or_bytes() {
        let countdown = Countdown::default();
        let passes = |count| countdown.count_unlimited(count).is_none();
        assert_eq!((0..5000).take_while(|_| passes(0)).count(), 1023);
        countdown.restart();
        assert_eq!((0..5000).take_while(|_| passes(1 << 30)).count(), 204);
    }
}
