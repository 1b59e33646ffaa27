//! The disk's time: what a class that gives way may take of it.
//!
//! A threshold in bytes does not keep the others from being slowed (Rate Windows, 4): between two
//! streams a disk spends its time on seeks, and a piece of a tenth of a second's worth may cost a
//! quarter of it. So while others are busy each piece of work is timed, and the next may start only
//! when so much time has passed that the others lose at most [`SLOWDOWN`] of theirs: a piece that
//! took `t` on a disk that serves others for the part `u` of the time costs them `t * u`, and as much
//! again at most for the way back. However little the others ask for, at most one in [`MEETINGS`] of
//! their requests is to find a piece there. The threshold stays the upper bound.
//!
//! What a piece takes besides its transfer, its *overhead*, is a seek on one disk and next to nothing on
//! another. It is learned from the pieces, and says how large a piece should be ([`piece`]).

use discnice_units::{Nanos, Rate};

/// What the others may lose, in thousandths of their time, as far as the piece's time tells. What it does not
/// tell, the disk's own read-ahead for them that is lost with each piece, makes 20 of these 15: a hard
/// disk's reader lost 57 ms to pieces that took 25.
pub const SLOWDOWN: u32 = 15;
/// A disk that is never idle, in thousandths.
pub const SATURATED: u32 = 1000;
/// A piece takes the disk for one part in so many of the time at most.
pub const MEETINGS: u32 = 10;

/// A seek: the overhead as long as no piece was timed, and the one with which a piece is as large as the threshold allows.
pub const SEEK: Nanos = Nanos::from_millis(10);
/// Longest overhead: two of the longest seeks of a hard disk.
const LONGEST: Nanos = Nanos::from_millis(50);
/// A piece that takes so many times as long as others of its size stands in a queue, and takes no disk time from others
/// meanwhile.
const QUEUED: u64 = 4;
/// Most by which the overhead grows with one piece, beside its double.
const GROWTH: Nanos = Nanos(500_000);
/// The transfer of a piece, for which hard disks take as long or longer.
const TRANSFER: Rate = Rate::per_second(200_000_000);
/// Smaller pieces gain nothing where there are no seeks: those of the kernel's own read-ahead are no smaller.
const SMALLEST: u64 = 128 << 10;

/// A piece costs the others its time, and the way back to where they were.
const THERE_AND_BACK: u32 = 2;

/// Part of a new look at a disk in what is known of its load: one in so many.
const SMOOTHING: u32 = 8;
/// Part of a new piece in what is known of the overhead: one in so many.
const SMOOTHING_OF_PIECES: u64 = 4;

/// How long `bytes` in so many pieces take as a rule.
#[must_use]
pub const fn usual(overhead: Nanos, pieces: u32, bytes: u64) -> Nanos {
    Nanos(overhead.0.saturating_mul(pieces as u64)).plus(TRANSFER.time_for(bytes))
}

/// The overhead after a piece of `bytes` took `took`.
#[must_use]
pub const fn overhead(before: Option<Nanos>, took: Nanos, bytes: u64) -> Nanos {
    let seen = took.minus(TRANSFER.time_for(bytes));
    let seen = if seen.0 > LONGEST.0 { LONGEST.0 } else { seen.0 };
    let Some(before) = before else { return Nanos(seen) };
    let most = before.0.saturating_mul(2).saturating_add(GROWTH.0);
    let seen = if seen > most { most } else { seen };
    let rest = before.0 / SMOOTHING_OF_PIECES * (SMOOTHING_OF_PIECES - 1);
    Nanos(rest.saturating_add(seen / SMOOTHING_OF_PIECES))
}

/// The largest piece, in bytes, where a threshold allows `most`: the smaller, the less is lost with each.
#[must_use]
pub const fn piece(most: u64, overhead: Nanos) -> u64 {
    let part = if overhead.0 > SEEK.0 { SEEK.0 } else { overhead.0 };
    let piece = (most as u128 * part as u128 / SEEK.0 as u128) as u64 / SMALLEST * SMALLEST;
    let piece = if piece < SMALLEST { SMALLEST } else { piece };
    if piece > most { most } else { piece }
}

/// The time from the start of a piece, which took `took` where `usual` is, until the next may start, on a
/// disk that is busy for `load` thousandths of the time.
#[must_use]
pub const fn time_for(took: Nanos, usual: Nanos, load: u32) -> Nanos {
    let longest = usual.0.saturating_mul(QUEUED);
    let took = if took.0 > longest { longest } else { took.0 };
    let load = if load > SATURATED { SATURATED } else { load };
    let parts = THERE_AND_BACK * load;
    let least = MEETINGS * SLOWDOWN;
    let parts = if parts < least { least } else { parts };
    let owed = took as u128 * parts as u128 / SLOWDOWN as u128;
    Nanos(if owed > u64::MAX as u128 { u64::MAX } else { owed as u64 })
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
        assert_eq!(time_for(TOOK, TOOK, SATURATED), Nanos::from_millis(4000));
        assert_eq!(time_for(TOOK, TOOK, SATURATED / 5), Nanos::from_millis(800));
        let idle = time_for(TOOK, TOOK, 0);
        assert_eq!(idle, Nanos::from_millis(300), "a tenth of one that has little to do");
    }

    #[test]
    fn the_queue_is_not_the_disk() {
        let long = time_for(Nanos::SECOND, TOOK, SATURATED);
        assert_eq!(long, time_for(Nanos(4 * TOOK.0), TOOK, SATURATED));
    }

    /// The overhead and the size of pieces after many on a disk with this seek and this rate.
    fn learned(seek: Nanos, rate: Rate) -> (Nanos, u64) {
        // A tenth of a second of a tenth of the disk.
        let most = rate.get() / 100;
        let mut known = None;
        let mut size = most;
        for _ in 0..100 {
            known = Some(overhead(known, seek.plus(rate.time_for(size)), size));
            size = piece(most, known.unwrap());
        }
        (known.unwrap(), size)
    }

    #[test]
    fn pieces_are_large_where_each_is_a_seek_and_small_where_none_is() {
        let (seek, flash) = (Nanos::from_millis(9), Nanos(80_000));
        for rate in [30, 48, 120, 280].map(|rate| Rate::per_second(rate * 1_000_000)) {
            let (known, size) = learned(seek, rate);
            assert!(known.0 > seek.0 / 2, "{rate:?}: {known}");
            assert!(size >= rate.get() / 100 * 6 / 10 / SMALLEST * SMALLEST, "{rate:?}: {size}");
        }
        for rate in [100, 500, 3000, 7000].map(|rate| Rate::per_second(rate * 1_000_000)) {
            assert_eq!(learned(flash, rate).1, SMALLEST, "{rate:?}");
        }
    }

    #[test]
    fn one_late_piece_changes_little() {
        let known = overhead(Some(Nanos(100_000)), Nanos::from_millis(40), SMALLEST);
        assert!(known < Nanos::from_millis(1), "{known}");
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
            let _ = time_for(Nanos(took), usual(Nanos(busy), 1, bytes), known);
            prop_assert!(overhead(Some(Nanos(gap)), Nanos(took), bytes).0 <= gap.max(LONGEST.0));
            prop_assert!(piece(bytes, Nanos(took)) <= bytes);
            prop_assert!(load(known, Nanos(busy), Nanos(gap)) <= SATURATED);
        }
    }
}
