//! The means against each other on a real file: cold, half read, foreign.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use discnice_graybox::pagecache::{
    Errno, Means, Oracle, Seen, cachestat, look, mincore, page_size, probe,
};
use discnice_requirements::skip;

const PAGES: u64 = 256;

/// A file of 256 pages on a disk file system, all of them cold.
fn cold_file() -> (tempfile::TempDir, File) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![7; usize::try_from(PAGES * page_size()).unwrap()]).unwrap();
    file.sync_all().unwrap();
    let status = std::process::Command::new("dd")
        .arg(format!("if={}", path.display()))
        .args(["iflag=nocache", "count=0", "status=none"])
        .status();
    assert!(status.unwrap().success());
    (dir, File::open(path).unwrap())
}

fn resident_by_mincore(fd: i32) -> Vec<u64> {
    let mut resident = Vec::new();
    mincore(fd, 0, PAGES * page_size(), |at, yes| {
        if yes {
            resident.push(at);
        }
    })
    .unwrap();
    resident
}

//= gray-box/4.1.1-probe
#[test]
fn cachestat_mincore_and_probes_agree() {
    let (_dir, file) = cold_file();
    let fd = file.as_raw_fd();
    match cachestat(fd, 0, PAGES * page_size()) {
        Err(Errno(38)) => skip!("no cachestat(2)"),
        Ok(counts) if counts.cached > 0 => skip!("the build folder's file system drops no cache"),
        other => assert_eq!(other.unwrap().cached, 0),
    }
    let offset = 100 * page_size() + 17;
    let seen = probe(fd, offset).unwrap();
    assert_eq!(seen.disk_bytes, page_size(), "a miss brings in one page and no read-ahead");
    assert_eq!(probe(fd, offset).unwrap().disk_bytes, 0);
    assert_eq!(resident_by_mincore(fd), [100 * page_size()]);
    assert_eq!(cachestat(fd, 0, PAGES * page_size()).unwrap().cached, 1);

    // What a fault maps around it, of a window that starts anywhere.
    let start = 91 * page_size();
    let seen = look(fd, start, offset).unwrap();
    assert_eq!(seen, Seen { start, read: false, cached: 1 << 9 });
    let seen = look(fd, start, start).unwrap();
    assert_eq!(seen, Seen { start, read: true, cached: 1 << 9 });
    assert_eq!(resident_by_mincore(fd), [start, 100 * page_size()]);

    let mut oracle = Oracle::of(fd);
    assert_eq!(oracle.cached_pages(0, PAGES * page_size()), Some((2, Means::Cachestat)));
    assert_eq!(oracle.cached_pages(0, page_size()), Some((0, Means::Cachestat)));
}

#[test]
fn beyond_the_end_is_an_error_and_not_a_hit() {
    let (_dir, file) = cold_file();
    assert_eq!(probe(file.as_raw_fd(), PAGES * page_size()), Err(Errno(14)));
    assert_eq!(probe(-1, 0), Err(Errno(9)));
    assert_eq!(look(file.as_raw_fd(), PAGES * page_size(), PAGES * page_size()), Err(Errno(14)));
    assert_eq!(look(-1, 0, 0), Err(Errno(9)));
    assert_eq!(Oracle::of(-1).cached_pages(0, 1), None);
}
