use super::*;
use proptest::prelude::*;

const SIZE: u64 = 60_000_000;

fn file(size: u64, window: u64) -> Served {
    Served { key: FileKey::new(1, 2), size, window }
}

/// Builds a [`Behind`] on a larger stack, as it does not fit a test's.
fn behind() -> Box<Behind> {
    let made = std::thread::Builder::new().stack_size(8 << 20);
    made.spawn(|| Box::new(Behind::new())).unwrap().join().unwrap()
}

fn touched(offset: u64, length: u64) -> Pages {
    Pages::read(offset, length, SIZE)
}

#[test]
fn a_file_is_read_once_however_often_it_is_opened() {
    let (behind, file) = (behind(), file(SIZE, 2048));
    let all = touched(0, SIZE);
    assert_eq!(behind.read(file, all), all.count());
    behind.opened(file.key);
    assert_eq!(behind.read(file, all), 0);
    behind.cut(file.key, 0, SIZE);
    assert_eq!(behind.read(file, all), all.count(), "another file of the same number");
}

#[test]
fn inodes_are_read_by_stretches() {
    let behind = behind();
    let look = |inode| behind.looked_at(7, inode, InodeTable::of("ext4"));
    assert_eq!((look(12), look(13), look(511), look(512)), (32, 0, 0, 32));
    assert_eq!(behind.looked_at(7, 5000, InodeTable::of("tmpfs")), 0, "not known");
    let _ = look(u64::MAX);
}

//= discnice/6.3-directories
#[test]
fn directories_are_read_once_by_blocks() {
    let (behind, key) = (behind(), FileKey::new(7, 2));
    let list = |size| behind.listed(key, size);
    assert_eq!((list(60), list(4096), list(8192), list(8192)), (0, 1, 1, 0));
}

#[test]
fn what_was_written_is_there() {
    let (behind, file) = (behind(), file(SIZE, 2048));
    behind.brought_in(file.key, touched(0, SIZE));
    assert_eq!(behind.missing(file.key, touched(0, SIZE)), 0);
    assert_eq!(behind.read(file, touched(4096, 1 << 20)), 0);
}

#[test]
fn a_hole_before_what_was_written_costs_nothing() {
    let (behind, file) = (behind(), file(80_188, 2048));
    behind.written(file.key, touched(80_176, 12), 0);
    assert_eq!(behind.read(file, touched(0, 1024)), 0);
    behind.written(file.key, Pages::touched(1 << 50, 1), 80_188);
    assert_eq!(behind.missing(file.key, touched(100_000, 4096)), 2, "too long to be entered");
}

//= discnice/4.3-size
//= discnice/5.4-modes
#[test]
fn reads_in_order_bring_in_what_was_measured() {
    // As Linux 6.18 does on ext4 with a window of 8 MiB: the call, and KiB read.
    for (each, calls, wanted) in [
        (4096, 80, &[(0, 16), (1, 64), (4, 240), (20, 960)][..]),
        (65_536, 20, &[(0, 256), (1, 1024), (4, 2048)][..]),
    ] {
        let (behind, file) = (behind(), file(SIZE, 2048));
        let seen: Vec<(u64, u64)> = (0..calls)
            .map(|call| (call, behind.read(file, touched(call * each, each)) * 4))
            .filter(|(_, read)| *read > 0)
            .collect();
        assert_eq!(seen, wanted);
    }
}

#[test]
fn a_read_out_of_order_brings_in_what_is_asked_for() {
    let (behind, file) = (behind(), file(SIZE, 2048));
    assert_eq!(behind.read(file, touched(30 << 20, 65_536)), 16);
    assert_eq!(behind.read(file, touched(20 << 20, 65_536)), 16);
}

#[test]
fn a_stride_over_four_pages_reads_all() {
    // As sqlite3 reads a table of long rows: pages of large folios hold the marks.
    let (behind, file) = (behind(), file(10_756_096, 2048));
    let mut read = behind.read(file, touched(0, 4096));
    behind.opened(file.key);
    let beginning = [(0, 4096), (4096, 32_768), (36_864, 65_536), (10_563_584, 4096)];
    let rows = (114_688..10_752_000).step_by(20_480).map(|at| (at, 4096));
    for (at, length) in beginning.into_iter().chain(rows) {
        read += behind.read(file, touched(at, length));
    }
    assert_eq!(read, file.size.div_ceil(PAGE), "as bindfs did");
}

#[test]
fn random_reads_meet_the_marks_of_others() {
    // 915 reads of 64 KiB at random: as many pages as bindfs read for a generator like this one, 1.3
    // to 1.4 times those that were asked for.
    let (behind, file) = (behind(), file(SIZE, 2048));
    let (mut state, mut read, mut asked) = (1u64, 0, 0);
    for _ in 0..915 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pages = touched((state >> 33) % 915 * 65_536, 65_536);
        asked += behind.missing(file.key, pages);
        read += behind.read(file, pages);
    }
    assert!(read > asked * 11 / 10, "{read} for {asked}");
}

proptest! {
    #[test]
    fn no_page_is_read_twice(reads in prop::collection::vec((0u64..5000, 1u64..70), 1..200), window in 1u64..4096, cut in 0u64..4096) {
        let size = 4000 * PAGE - cut;
        let (behind, file) = (behind(), file(size, window));
        let mut read = 0;
        for (first, count) in reads {
            let asked = Pages { first, end: first + count };
            let inside = Pages { first, end: asked.end.min(4000) };
            let missing = if inside.count() > 0 { behind.missing(file.key, inside) } else { 0 };
            let cost = behind.read(file, asked);
            prop_assert!(cost >= missing);
            if inside.count() > 0 {
                prop_assert_eq!(behind.missing(file.key, inside), 0);
            }
            read += cost;
        }
        prop_assert!(read <= 4000);
    }

    #[test]
    fn any_state_and_any_range_are_survived(words: [u64; WORDS], first: u64, count in 0u64..5_000, size: u64, window: u64) {
        let behind = behind();
        let file = file(size, window);
        store(behind.slot(file.key).unwrap(), file.key, ReadAhead::from_words(words));
        let asked = Pages { first, end: first.saturating_add(count) };
        let _ = behind.read(file, asked);
    }
}
