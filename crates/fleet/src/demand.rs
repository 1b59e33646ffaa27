//! What a node wants: as much as it can get while it is held, and a little more than it uses otherwise.

use discnice_units::{Bytes, Moment, Nanos};

/// A node that waited for less than one part in so many of the time was not held.
const WAITED: u64 = 20;
/// What a node that is not held wants beyond what it uses, one part in so many, so that it can grow.
const ROOM: u64 = 2;
/// And at least so many bytes a second.
const ROOM_LEAST: u64 = 256 << 10;

/// What a class had done at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// The moment.
    pub at: Moment,
    /// What its members have moved since the class was made.
    pub moved: Bytes,
    /// How long its members were held since then, in waits that have ended.
    pub waited: Nanos,
    /// How long its next call would be held. Below a low rate one wait lasts longer than the time between two looks.
    pub owed: Nanos,
}

/// Returns true if members were held for some of the time between two moments, or are.
#[must_use]
pub const fn was_held(before: &Done, now: &Done) -> bool {
    let (time, waited) = (now.at.since(before.at), now.waited.minus(before.waited));
    let held = waited.0.saturating_add(now.owed.0);
    held.saturating_mul(WAITED) > time.0
}

/// Bytes a second that a class could use, `most` at most.
#[must_use]
pub fn wants(before: &Done, now: &Done, most: u64) -> u64 {
    if was_held(before, now) {
        return most;
    }
    let moved = u128::from(now.moved.get().saturating_sub(before.moved.get()));
    let time = u128::from(now.at.since(before.at).0);
    let used = (moved * u128::from(Nanos::SECOND.0)).checked_div(time).unwrap_or(0);
    let used = u64::try_from(used).unwrap_or(u64::MAX);
    let room = if used == 0 { 0 } else { (used / ROOM).max(ROOM_LEAST) };
    used.saturating_add(room).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_class_wants_all() {
        let second = |at, moved, waited| Done {
            at: Moment(at * Nanos::SECOND.0),
            moved: Bytes::new(moved),
            waited: Nanos::from_millis(waited),
            owed: Nanos(0),
        };
        let most = 1 << 40;
        assert_eq!(wants(&second(1, 0, 0), &second(2, 5000, 900), most), most);
        assert_eq!(wants(&second(1, 0, 0), &second(3, 20 << 20, 10), most), 15 << 20);
        assert_eq!(wants(&second(1, 7, 0), &second(2, 7, 0), most), 0, "idle");
        assert_eq!(wants(&second(1, 0, 0), &second(2, 1000, 0), most), 1000 + (256 << 10));
        assert_eq!(wants(&second(1, 0, 0), &second(2, 1000, 0), 5), 5);
        assert_eq!(wants(&second(1, 0, 0), &second(1, 1000, 0), 500), 0, "no time passed");
        let waits = Done { owed: Nanos::from_millis(900), ..second(2, 0, 0) };
        assert_eq!(wants(&second(1, 0, 0), &waits, most), most, "one wait that goes on");
    }
}
