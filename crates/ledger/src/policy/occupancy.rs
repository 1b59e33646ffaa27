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
//! another. It is learned from the pieces, and says how large a piece should be ([`piece`]). The rate of the
//! transfer is learned from what the disk moves while it is busy with large requests ([`transfer`]).

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
/// The rate of a disk's transfer until it is known, and at most: hard disks are as fast or slower, and on faster disks the
/// transfer of a piece takes next to nothing.
pub const TRANSFER: Rate = Rate::per_second(200_000_000);
/// Smaller pieces gain nothing where there are no seeks: those of the kernel's own read-ahead are no smaller.
const SMALLEST: u64 = 128 << 10;

/// A piece costs the others its time, and the way back to where they were.
const THERE_AND_BACK: u32 = 2;

/// Part of a new look at a disk in what is known of its load: one in so many.
const SMOOTHING: u32 = 8;
/// Part of a new piece in what is known of the overhead: one in so many.
const SMOOTHING_OF_PIECES: u64 = 4;

/// Requests that are as large, in bytes, take most of their time to be transferred.
const LARGE: u64 = 96 << 10;
/// A look at a disk that was busy for less of it tells little of its rate.
const BUSY: Nanos = Nanos::from_millis(20);
/// Part of a new look in what is known of the rate: one in so many if it is higher, and if it is lower. A lower one is mostly
/// that of requests with seeks between them.
const RISE: u64 = 8;
const FALL: u64 = 512;

/// What is known of a disk from the pieces and the looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// What a piece takes besides its transfer.
    pub overhead: Nanos,
    /// The rate of its transfer; [`TRANSFER`] at most.
    pub transfer: Rate,
}

/// How long `bytes` in so many pieces take as a rule.
#[must_use]
pub const fn usual(costs: Costs, pieces: u32, bytes: u64) -> Nanos {
    Nanos(costs.overhead.0.saturating_mul(pieces as u64)).plus(costs.transfer.time_for(bytes))
}

/// The rate of the transfer after a look at a disk that moved `bytes` in so many requests while it was busy for `busy`.
#[must_use]
pub const fn transfer(
    before: Option<Rate>,
    bytes: u64,
    requests: u64,
    busy: Nanos,
) -> Option<Rate> {
    if busy.0 < BUSY.0 || requests == 0 || bytes / requests < LARGE {
        return before;
    }
    let seen = bytes as u128 * Nanos::SECOND.0 as u128 / busy.0 as u128;
    let most = TRANSFER.get();
    let seen = if seen > most as u128 { most } else { seen as u64 };
    let Some(before) = before else { return Some(Rate::per_second(seen)) };
    let before = before.get();
    Some(Rate::per_second(if seen > before {
        before.saturating_add((seen - before) / RISE)
    } else {
        before - (before - seen) / FALL
    }))
}

/// The overhead after a piece of `bytes` took `took` where a transfer has this rate.
#[must_use]
pub const fn overhead(before: Option<Nanos>, took: Nanos, bytes: u64, transfer: Rate) -> Nanos {
    let seen = took.minus(transfer.time_for(bytes));
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
            known = Some(overhead(known, seek.plus(rate.time_for(size)), size, rate.min(TRANSFER)));
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
        let known = overhead(Some(Nanos(100_000)), Nanos::from_millis(40), SMALLEST, TRANSFER);
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

    #[test]
    fn the_rate_is_that_of_large_requests() {
        let (look, disk) = (Nanos::from_millis(50), Rate::per_second(48_000_000));
        let large = |known, _| transfer(known, disk.units_in(look), 20, look);
        let known = large(None, 0);
        assert_eq!(known, Some(disk));
        // Small requests, a look at a disk with little to do, one that did nothing.
        assert_eq!(transfer(known, 200 << 10, 50, look), known);
        assert_eq!(transfer(known, 1 << 20, 4, Nanos::from_millis(10)), known);
        assert_eq!(transfer(None, 0, 0, look), None);
        // Seeks between large requests, for ten seconds; then a second in order.
        let sought = (0..200).fold(known, |known, _| transfer(known, 500 << 10, 4, look));
        assert!(sought.unwrap().get() > 30_000_000, "{sought:?}");
        let again = (0..20).fold(sought, large).unwrap();
        assert!(again.get() > 46_000_000, "{again:?}");
    }

    proptest! {
        #[test]
        fn arithmetic_never_overflows(took: u64, bytes: u64, busy: u64, gap: u64, known: u32) {
            let rate = Rate::per_second(gap.max(1));
            let costs = Costs { overhead: Nanos(busy), transfer: rate };
            let _ = time_for(Nanos(took), usual(costs, 1, bytes), known);
            let _ = transfer(Some(rate), bytes, u64::from(known), Nanos(busy));
            prop_assert!(overhead(Some(Nanos(gap)), Nanos(took), bytes, rate).0 <= gap.max(LONGEST.0));
            prop_assert!(piece(bytes, Nanos(took)) <= bytes);
            prop_assert!(load(known, Nanos(busy), Nanos(gap)) <= SATURATED);
        }
    }
}
