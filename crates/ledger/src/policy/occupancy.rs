//! The disk's time: what a class that gives way may take of it.
//!
//! A threshold in bytes does not keep the others from being slowed (Rate Windows, 4): between two
//! streams a disk spends its time on seeks, and a piece of a tenth of a second's worth may cost a
//! quarter of it. So while others are busy each piece of work is timed, and the next may start only
//! when so much time has passed that the others lose at most [`SLOWDOWN`] of theirs: a piece that
//! took `t` on a disk that serves others for the part `u` of the time costs them `t * u`, and as much
//! again at most for the way back. The threshold stays the upper bound.

use discnice_units::Nanos;

/// What the others may lose, in thousandths of their time, as far as the piece's time tells. What it does not
/// tell, the disk's own read-ahead for them that is lost with each piece, makes 20 of these 15: a hard
/// disk's reader lost 57 ms to pieces that took 25.
pub const SLOWDOWN: u32 = 15;
/// A disk that is never idle, in thousandths.
pub const SATURATED: u32 = 1000;

/// Longest disk time of a piece of at most [`PIECE`]: two of the longest seeks of a hard disk and
/// the transfer. A piece that took longer stood in a queue, and took no disk time from others
/// meanwhile.
const LONGEST: Nanos = Nanos::from_millis(50);
const PIECE: u64 = 1 << 20;

/// A piece counts as taking so long as long as none was timed: a seek.
pub const UNSEEN: Nanos = Nanos::from_millis(10);

/// A piece costs the others its time, and the way back to where they were.
const THERE_AND_BACK: u32 = 2;

/// Part of a new look at a disk in what is known of its load: one in so many.
const SMOOTHING: u32 = 8;

/// The time from the start of a piece of `bytes`, which took `took`, until the next may start, on a
/// disk that is busy for `load` thousandths of the time.
#[must_use]
pub const fn time_for(took: Nanos, bytes: u64, load: u32) -> Nanos {
    let pieces = bytes.div_ceil(PIECE);
    let longest = LONGEST.0.saturating_mul(if pieces == 0 { 1 } else { pieces });
    let took = if took.0 > longest { longest } else { took.0 };
    let load = if load > SATURATED { SATURATED } else { load };
    let owed = took as u128 * (THERE_AND_BACK * load) as u128 / SLOWDOWN as u128;
    let owed = if owed > u64::MAX as u128 { u64::MAX } else { owed as u64 };
    Nanos(if owed < took { took } else { owed })
}

/// The load after a disk was busy for `busy` of the time `gap`, in thousandths.
#[must_use]
pub const fn load(before: u32, busy: Nanos, gap: Nanos) -> u32 {
    let gap = if gap.0 == 0 { 1 } else { gap.0 };
    let part = busy.0 as u128 * SATURATED as u128 / gap as u128;
    let part = if part > SATURATED as u128 { SATURATED } else { part as u32 };
    let before = if before > SATURATED { SATURATED } else { before };
    (before * (SMOOTHING - 1) + part).div_ceil(SMOOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOOK: Nanos = Nanos::from_millis(30);

    #[test]
    fn a_saturated_disk_gives_less_than_a_hundredth() {
        assert_eq!(time_for(TOOK, 4096, SATURATED), Nanos::from_millis(4000));
        assert_eq!(time_for(TOOK, 4096, SATURATED / 10), Nanos::from_millis(400));
        assert_eq!(time_for(TOOK, 4096, 0), TOOK, "an idle one all of its time");
    }

    #[test]
    fn the_queue_is_not_the_disk() {
        let long = time_for(Nanos::SECOND, 4096, SATURATED);
        assert_eq!(long, time_for(LONGEST, 4096, SATURATED));
        assert_eq!(time_for(Nanos::SECOND, 3 * PIECE, SATURATED), Nanos(3 * LONGEST.0 * 400 / 3));
    }

    #[test]
    fn a_load_is_known_after_some_looks() {
        let gap = Nanos::from_millis(50);
        let up = (0..16).fold(0, |known, _| load(known, gap, gap));
        assert!(up > 850, "{up}");
        let down = (0..40).fold(SATURATED, |known, _| load(known, Nanos(0), gap));
        assert!(down < 20, "{down}");
    }

    proptest! {
        #[test]
        fn arithmetic_never_overflows(took: u64, bytes: u64, busy: u64, gap: u64, known: u32) {
            let _ = time_for(Nanos(took), bytes, known);
            prop_assert!(load(known, Nanos(busy), Nanos(gap)) <= SATURATED);
        }
    }
}
