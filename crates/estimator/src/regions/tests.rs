//! The table against a model: a set of pages.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use discnice_units::{Moment, Nanos};
use proptest::prelude::*;

use crate::blocks::Pages;
use crate::regions::{EXPIRE, FileKey, UpdateRegions};

static TABLE: UpdateRegions = UpdateRegions::new();

/// A file that no other test writes.
fn fresh_file() -> FileKey {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    FileKey::new(1, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, u64),
    WrittenBack(u64, u64),
    Sync,
    Delete,
    Truncate(u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    // Around leaves' borders, and far out.
    let place = prop_oneof![0u64..300, (0u64..50).prop_map(|n| (10 << 28) + n)];
    let change = prop_oneof![
        6 => (place.clone(), 1u64..150).prop_map(|(at, count)| Change::Write(at, count)),
        2 => (place.clone(), 1u64..150).prop_map(|(at, count)| Change::WrittenBack(at, count)),
        1 => Just(Change::Sync),
        1 => Just(Change::Delete),
        2 => place.prop_map(Change::Truncate),
    ];
    prop::collection::vec(change, 1..80)
}

proptest! {
    //= discnice/5.2-inode
    //= discnice/4.4-table
    #[test]
    fn the_table_knows_what_is_dirty(changes in changes()) {
        let (file, now) = (fresh_file(), Moment(1000 * Nanos::SECOND.0));
        let mut dirty: HashSet<u64> = HashSet::new();
        for change in changes {
            match change {
                Change::Write(at, count) => {
                    let pages = Pages { first: at, end: at + count };
                    let new = (at..at + count).filter(|page| !dirty.contains(page)).count() as u64;
                    prop_assert_eq!(TABLE.clean(file, pages, now), new);
                    prop_assert_eq!(TABLE.register(file, pages, now), new);
                    dirty.extend(at..at + count);
                }
                Change::WrittenBack(at, count) => {
                    let gone = (at..at + count).filter(|page| dirty.remove(page)).count() as u64;
                    prop_assert_eq!(TABLE.written_back(file, Pages { first: at, end: at + count }), gone);
                }
                Change::Sync => {
                    TABLE.flushed(file);
                    dirty.clear();
                }
                Change::Delete => {
                    prop_assert_eq!(TABLE.dropped(file, 11 << 40, now), dirty.len() as u64);
                    dirty.clear();
                }
                Change::Truncate(pages) => {
                    let before = dirty.len() as u64;
                    dirty.retain(|page| *page < pages);
                    let gone = before - dirty.len() as u64;
                    prop_assert_eq!(TABLE.truncated(file, pages * 4096, 11 << 40, now), gone);
                }
            }
        }
    }
}

//= discnice/4.4-clear
#[test]
fn what_is_old_has_been_written() {
    let (file, now) = (fresh_file(), Moment(1000 * Nanos::SECOND.0));
    let pages = Pages { first: 0, end: 100 };
    assert_eq!(TABLE.register(file, pages, now), 100);
    // The table's clock has units of a microsecond.
    let later = now.plus(EXPIRE).plus(Nanos(2048));
    assert_eq!(TABLE.clean(file, pages, later), 100);
    assert_eq!(TABLE.register(file, Pages { first: 0, end: 10 }, later), 10);
    assert_eq!(TABLE.dropped(file, 100 * 4096, later), 10, "the others cannot be taken back");
}

#[test]
fn offsets_near_the_end_of_the_world() {
    let (file, now) = (fresh_file(), Moment(1000 * Nanos::SECOND.0));
    let large = Pages::touched((1 << 53) - 10_000, 10_000);
    assert_eq!(TABLE.register(file, large, now), large.count());
    assert_eq!(TABLE.register(file, large, now), 0, "inside of what the table can name");
    let beyond = Pages::touched(i64::MAX as u64 - 10_000, u64::MAX);
    assert!(TABLE.register(file, beyond, now) > 0);
    assert_eq!(TABLE.register(file, beyond, now), beyond.count(), "charged each time");
    assert_eq!(TABLE.written_back(file, beyond), 0);
}

//= discnice/5.2-huge-files
#[test]
fn a_range_of_terabytes_is_not_walked() {
    let (file, now) = (fresh_file(), Moment(1000 * Nanos::SECOND.0));
    let ends = [Pages { first: 3, end: 200 }, Pages::touched((1 << 52) - 9000, 9000)];
    let dirty: u64 = ends.map(|pages| TABLE.register(file, pages, now)).iter().sum();
    // Page by page, or leaf by leaf, this takes hours.
    let all = Pages { first: 0, end: u64::MAX >> 12 };
    assert_eq!(TABLE.written_back(file, Pages { first: 200, ..all }), ends[1].count());
    assert_eq!(TABLE.written_back(file, all), dirty - ends[1].count());
    assert_eq!(TABLE.written_back(file, all), 0);
}

#[test]
fn a_full_table_forgets_the_oldest() {
    static SMALL: UpdateRegions = UpdateRegions::new();
    let now = |step: u64| Moment(1000 * Nanos::SECOND.0 + step);
    let files: Vec<FileKey> = (0..20_000).map(|inode| FileKey::new(9, inode)).collect();
    for (step, file) in files.iter().enumerate() {
        assert_eq!(SMALL.register(*file, Pages { first: 0, end: 3 }, now(step as u64)), 3);
    }
    let recent = files.iter().rev().take(500);
    let kept =
        recent.filter(|file| SMALL.clean(**file, Pages { first: 0, end: 3 }, now(30_000)) == 0);
    assert!(kept.count() >= 495);
}

#[test]
fn of_what_is_equally_old_the_largest_is_kept() {
    static SAME: UpdateRegions = UpdateRegions::new();
    let (large, all, now) = (FileKey::new(9, 0), Pages { first: 0, end: 300 }, Moment(1));
    assert_eq!(SAME.register(large, all, now), 300);
    for inode in 1..40_000 {
        SAME.register(FileKey::new(9, inode), Pages { first: 0, end: 2 }, now);
    }
    assert_eq!(SAME.clean(large, all, now), 0);
}

/// Pages charged to four threads that write the same 2,001 pages.
fn charged_to_four() -> u64 {
    let (file, now) = (fresh_file(), Moment(1000 * Nanos::SECOND.0));
    let write = move || -> u64 {
        (0..2000).map(|page| TABLE.register(file, Pages { first: page, end: page + 2 }, now)).sum()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

//= discnice/5.2-process
#[test]
fn two_processes_charge_a_page_once() {
    let charged: Vec<u64> = (0..8).map(|_| charged_to_four()).collect();
    // A thread preempted between two steps of taking a slot may cost a leaf's pages: once in a
    // thousand.
    let exact = charged.iter().filter(|pages| (2001..2001 + 8).contains(*pages)).count();
    assert!(exact >= 7, "{charged:?}");
    assert!(charged.iter().all(|pages| (2001..2001 + 200).contains(pages)), "{charged:?}");
}
