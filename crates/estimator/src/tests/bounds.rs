//! What the estimator takes at most, and what it makes of clocks and counters that lie.

use discnice_units::{Moment, Nanos};

use crate::blocks::Pages;
use crate::regions::{EXPIRE, FileKey, UpdateRegions};
use crate::{Access, CallKind, FileSystem, Verdict};

const START: Moment = Moment(1000 * Nanos::SECOND.0);
const HOUR: Nanos = Nanos(3600 * Nanos::SECOND.0);
/// What a dirty range may take, in bytes.
const A_RANGE: u64 = 32;

fn page(first: u64) -> Pages {
    Pages { first, end: first + 1 }
}

//= discnice/5.2-page-units
#[test]
fn a_dirty_range_takes_32_bytes() {
    static SMALL: UpdateRegions = UpdateRegions::new();
    // Files as they are unpacked, of 4 to 256 KiB, and one that was written far behind its start.
    for inode in 0..500 {
        SMALL.register(FileKey::new(1, inode), Pages { first: 0, end: 1 + inode % 64 }, START);
    }
    SMALL.register(FileKey::new(1, 1000), page(1 << 20), START);
    assert!(SMALL.bytes_in_use() <= 501 * A_RANGE, "{}", SMALL.bytes_in_use());
    static SPREAD: UpdateRegions = UpdateRegions::new();
    // A database of ten terabytes.
    for range in 0..4000 {
        SPREAD.register(FileKey::new(1, 1), page(range * 671_089), START);
    }
    assert!(SPREAD.bytes_in_use() <= 4000 * A_RANGE, "{}", SPREAD.bytes_in_use());
    SPREAD.flushed(FileKey::new(1, 1));
    assert_eq!(SPREAD.dropped(FileKey::new(1, 1), 1 << 50, START), 0);
    static LONG: UpdateRegions = UpdateRegions::new();
    // A long one takes as much for each 256 KiB of it, a ten thousandth.
    let pages = Pages { first: 7, end: 7 + (256 << 8) };
    LONG.register(FileKey::new(1, 1), pages, START);
    assert!(LONG.bytes_in_use() <= (pages.count().div_ceil(64) + 1) * A_RANGE);
    assert!(LONG.bytes_in_use() * 10_000 < pages.bytes(), "{}", LONG.bytes_in_use());
    assert!(LONG.bytes_in_use() > 0, "this counts something");
    assert!(size_of::<UpdateRegions>() <= (1 << 20) + 64);
}

/// What a range takes on average of 4,000 that are written where `place` says, so many pages each, in bytes.
fn on_average(length: u64, place: impl Fn(u64) -> u64) -> u64 {
    let table = std::thread::Builder::new().stack_size(8 << 20);
    let table = table.spawn(|| Box::new(UpdateRegions::new())).unwrap().join().unwrap();
    for range in 0..4000 {
        let first = place(range);
        table.register(FileKey::new(1, 1), Pages { first, end: first + length }, START);
    }
    table.bytes_in_use() / 4000
}

#[test]
fn a_dirty_range_at_any_place_takes_32_bytes_on_average() {
    // The longer a range is, the more often it crosses into a second leaf (64 pages). A range takes
    // 32 bytes up to 84 KiB, 48 at worst, at 256 KiB, and 24 for each 256 KiB if it is longer.
    let anywhere = |range: u64| range.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for length in [1, 4, 16, 21] {
        assert!(on_average(length, anywhere) <= A_RANGE, "{length} pages");
    }
    assert!((40..=48).contains(&on_average(64, anywhere)));
    // What is written in order is one range for 256 KiB; a log that leaves out each other page less than a byte.
    assert!(on_average(64, |range| range * 64) <= A_RANGE);
    assert!(on_average(1, |range| range * 2) <= 1);
}

#[test]
fn a_clock_that_jumps_forwards_writes_everything_and_one_that_jumps_back_too() {
    static TABLE: UpdateRegions = UpdateRegions::new();
    // At the file's start, at a leaf of its own, and beyond what the first may be at.
    for (inode, first) in [(1, 0), (2, 5 << 30)] {
        let (file, all) = (FileKey::new(3, inode), Pages { first, end: first + 200 });
        for then in [START.plus(HOUR), START.minus(Nanos(900 * Nanos::SECOND.0)), Moment::FIRST] {
            assert_eq!(TABLE.register(file, all, START), 200);
            assert_eq!(TABLE.register(file, all, START.plus(Nanos(1))), 0);
            assert_eq!(TABLE.clean(file, all, then), 200, "to {then:?}");
            assert_eq!(TABLE.register(file, all, then), 200, "what is dirty is forgotten once");
            assert_eq!(TABLE.register(file, all, then), 0, "and then known again");
            assert_eq!(TABLE.dropped(file, (first + 200) * 4096, then), 200);
            assert_eq!(TABLE.dropped(file, (first + 200) * 4096, then), 0);
        }
    }
}

#[test]
fn processors_with_slightly_different_clocks_agree() {
    static TABLE: UpdateRegions = UpdateRegions::new();
    for (inode, first) in [(1, 0), (2, 5 << 30)] {
        let (file, all) = (FileKey::new(3, inode), Pages { first, end: first + 200 });
        assert_eq!(TABLE.register(file, all, START), 200);
        assert_eq!(TABLE.register(file, all, START.minus(Nanos(5_000_000))), 0);
        assert_eq!(TABLE.clean(file, all, START.minus(EXPIRE).plus(Nanos(2048))), 0);
    }
}

#[test]
fn accounts_that_lie_are_survived() {
    for account in [0, 1, u64::MAX / 2, u64::MAX] {
        let fs = FileSystem::default();
        for _ in 0..4 {
            let predicted = fs.waited(3, Access::Looks);
            fs.note(CallKind::Metadata, predicted, account);
            fs.note(CallKind::Read, 1 << 20, account);
            fs.credit(CallKind::Write, u64::MAX);
        }
        let _ = (fs.total().net(), fs.overhead(), fs.verdict());
        let silent =
            fs.compared(CallKind::Read).account < fs.compared(CallKind::Read).predicted / 8;
        assert_eq!(fs.verdict() == Verdict::Silent, silent);
    }
}
