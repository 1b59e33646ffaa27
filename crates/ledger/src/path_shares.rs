//! What each connection of a class may do on the paths that carry its traffic, for members to pass on to the kernel. Their
//! watcher decides it, and says it here where it cannot tell the kernel itself.

use core::sync::atomic::fence;

use discnice_units::Moment;

use crate::primitive::{AtomicU64, Ordering};
use crate::uplink::{Address, FRESH};

/// Paths that have a share at a time.
pub const PATHS: usize = 16;
/// The address of no machine.
const NONE: [u8; 16] = [0; 16];
/// Attempts of a reader to find the table unchanged meanwhile.
const ATTEMPTS: u32 = 8;

/// What one connection of a path may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathShare {
    /// The address of the other end: IPv6, or IPv4 as IPv6 writes it.
    pub peer: [u8; 16],
    /// Bytes a second that it may send; `None` for any.
    pub rate: Option<u64>,
    /// Bytes that may be on their way to it; `None` for any.
    pub window: Option<u64>,
}

/// A share as it is kept; a peer of zeroes is none, as is a rate or a window of zero.
#[derive(Debug, Default)]
#[repr(C)]
struct Entry {
    peer: Address,
    rate: AtomicU64,
    window: AtomicU64,
}

/// The shares of a class.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct PathShares {
    /// Counts the beginnings and the ends of changes, so it is odd during one.
    changes: AtomicU64,
    /// When they were said last; zero if there are none.
    said_at: AtomicU64,
    entries: [Entry; PATHS],
}

impl PathShares {
    /// Returns true if there are shares, which may be void.
    #[inline]
    #[must_use]
    pub fn are_said(&self) -> bool {
        self.said_at.load(Ordering::Relaxed) != 0
    }

    /// Returns a number that changes with the shares; zero if there are none.
    #[must_use]
    pub fn version(&self, now: Moment) -> u32 {
        let said_at = Moment(self.said_at.load(Ordering::Relaxed));
        if said_at.0 == 0 || now >= said_at.plus(FRESH) {
            return 0;
        }
        ((self.changes.load(Ordering::Acquire) >> 1) as u32).max(1)
    }

    /// Returns the share of the path to a machine; `None` also while shares are being said.
    #[must_use]
    pub fn of(&self, peer: [u8; 16]) -> Option<PathShare> {
        for _ in 0..ATTEMPTS {
            let before = self.changes.load(Ordering::Acquire);
            let found = self.find(peer);
            fence(Ordering::Acquire);
            if before & 1 == 0 && before == self.changes.load(Ordering::Relaxed) {
                return found;
            }
            core::hint::spin_loop();
        }
        None
    }

    fn find(&self, peer: [u8; 16]) -> Option<PathShare> {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let is_its = |entry: &&Entry| peer != NONE && entry.peer.get() == peer;
        let entry = self.entries.iter().find(is_its)?;
        let given = |word: &AtomicU64| Some(load(word)).filter(|value| *value != 0);
        Some(PathShare { peer, rate: given(&entry.rate), window: given(&entry.window) })
    }

    /// Says the shares of up to [`PATHS`] paths; what was said before is void. One thread at a time.
    pub fn say(&self, now: Moment, shares: impl IntoIterator<Item = PathShare>) {
        self.changes.fetch_or(1, Ordering::Relaxed);
        fence(Ordering::Release);
        let mut shares = shares.into_iter();
        for entry in &self.entries {
            let share = shares.next();
            entry.peer.set(share.map_or(NONE, |share| share.peer));
            let kept = |value: Option<u64>| value.map_or(0, |value| value.max(1));
            entry.rate.store(share.map_or(0, |share| kept(share.rate)), Ordering::Relaxed);
            entry.window.store(share.map_or(0, |share| kept(share.window)), Ordering::Relaxed);
        }
        self.said_at.store(now.0.max(1), Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Says that there are no shares any more.
    pub fn end(&self) {
        self.said_at.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use super::*;

    const NOW: Moment = Moment(5 * Nanos::SECOND.0);

    fn share(last: u8, rate: Option<u64>, window: Option<u64>) -> PathShare {
        let mut peer = [0; 16];
        peer[15] = last;
        PathShare { peer, rate, window }
    }

    #[test]
    fn what_was_said_of_a_path_is_found_until_it_is_void() {
        let all = PathShares::default();
        assert!(!all.are_said() && all.version(NOW) == 0);
        let said = [share(1, Some(1000), None), share(2, None, Some(64))];
        all.say(NOW, said);
        assert_eq!(said.map(|one| all.of(one.peer)), said.map(Some));
        assert_eq!((all.of(share(3, None, None).peer), all.of([0; 16])), (None, None));
        let version = all.version(NOW);
        assert!(version != 0 && all.version(NOW.plus(FRESH)) == 0);
        all.say(NOW, [share(2, Some(0), None)]);
        assert!(all.version(NOW) != version && all.of(said[0].peer).is_none());
        assert_eq!(all.of(said[1].peer), Some(share(2, Some(1), None)), "a rate of zero is one");
        all.end();
        assert!(!all.are_said() && all.version(NOW) == 0);
    }

    #[test]
    fn more_paths_than_fit_have_no_share() {
        let all = PathShares::default();
        all.say(NOW, (1..=PATHS as u8 + 1).map(|last| share(last, Some(7), None)));
        assert!(all.of(share(PATHS as u8, None, None).peer).is_some());
        assert!(all.of(share(PATHS as u8 + 1, None, None).peer).is_none());
    }

    #[test]
    fn a_writer_that_died_while_it_said_shares_leaves_none() {
        let all = PathShares::default();
        all.say(NOW, [share(1, Some(7), None)]);
        all.changes.fetch_or(1, Ordering::Relaxed);
        assert_eq!(all.of(share(1, None, None).peer), None);
        all.say(NOW, [share(1, Some(8), None)]);
        assert_eq!(all.of(share(1, None, None).peer), Some(share(1, Some(8), None)));
    }
}
