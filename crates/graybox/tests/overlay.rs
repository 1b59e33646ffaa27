//! What is special about overlayfs, on a real one that an ordinary user mounts: residency and write-back are those
//! of the file below, and what is opened to be written is copied.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_graybox::pagecache::{Oracle, cachestat, page_size};
use discnice_requirements::skip;
use discnice_sys::file;

const PAGES: u64 = 64;
/// Names the folder to the test where it is mounted.
const FOLDER: &str = "DISCNICE_TEST_OVERLAY";
/// What libtest exits with when a test failed.
const FAILED: i32 = 101;
/// Nothing here takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Mounts in namespaces of its own, gone with the process, for any user.
const MOUNT: &str = "cd \"$0\" && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && exec \"$@\"";

//= gray-box/4.1.1-mincore
#[test]
fn overlayfs_is_seen_through() {
    // It starts itself where an overlayfs is mounted.
    if let Some(folder) = std::env::var_os(FOLDER) {
        within_the_mount(Path::new(&folder));
    } else {
        mount_and_look();
    }
}

fn mount_and_look() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let mut lower = File::create(folder.path().join("lower/data")).unwrap();
    lower.write_all(&vec![7; bytes() as usize]).unwrap();
    lower.sync_all().unwrap();
    let child = Command::new("unshare")
        .args(["-Urm", "sh", "-c", MOUNT])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "overlayfs_is_seen_through", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn();
    match child.ok().map(|mut child| ended(&mut child)) {
        Some(Some(0)) => {}
        Some(Some(FAILED)) => panic!("see above"),
        Some(None) => panic!("it did not end"),
        other => skip!("no overlayfs in namespaces of an ordinary user ({other:?})"),
    }
}

/// A child's exit status; one that does not end is killed.
fn ended(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(FAILED));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().and_then(|()| child.wait()).unwrap();
    None
}

fn within_the_mount(folder: &Path) {
    if cachestat(File::open(folder.join("lower/data")).unwrap().as_raw_fd(), 0, 1).is_err() {
        skip!("no cachestat(2), by which the file below is looked at");
    }
    residency_is_that_of_the_file_below(folder);
    write_back_starts_below(folder);
    what_is_opened_to_be_written_is_copied(folder);
}

fn bytes() -> u64 {
    PAGES * page_size()
}

fn cached(file: &File) -> u64 {
    Oracle::of(file.as_raw_fd()).cached_pages(0, bytes()).expect("an exact means").0
}

fn residency_is_that_of_the_file_below(folder: &Path) {
    let mut merged = File::open(folder.join("merged/data")).unwrap();
    let lower = File::open(folder.join("lower/data")).unwrap();
    assert!(file::is_on_overlay(merged.as_raw_fd()) && !file::is_on_overlay(lower.as_raw_fd()));
    file::advise(lower.as_raw_fd(), libc::POSIX_FADV_DONTNEED).unwrap();
    assert_eq!(cached(&merged), cached(&lower), "cold, where the file system can be");
    merged.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!((cached(&merged), cached(&lower)), (PAGES, PAGES));
}

fn write_back_starts_below(folder: &Path) {
    let mut merged = File::create_new(folder.join("merged/new")).unwrap();
    merged.write_all(&vec![7; bytes() as usize]).unwrap();
    let upper = File::open(folder.join("upper/new")).unwrap();
    let below = || cachestat(upper.as_raw_fd(), 0, bytes()).unwrap();
    if below().dirty == 0 {
        skip!("nothing is dirty on this file system, or something has written it");
    }
    file::start_write_back(merged.as_raw_fd(), 0, 0).unwrap();
    assert!(below().cached > 0, "without an end it would drop what is clean");
    file::start_write_back(merged.as_raw_fd(), 0, bytes()).unwrap();
    let begun = Instant::now();
    while below().dirty > 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "not written: {:?}", below());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn what_is_opened_to_be_written_is_copied(folder: &Path) {
    let lower = File::open(folder.join("lower/data")).unwrap();
    assert!(!folder.join("upper/data").exists());
    // To a clock tick, on file systems that know it.
    std::thread::sleep(Duration::from_millis(50));
    let merged = OpenOptions::new().write(true).open(folder.join("merged/data")).unwrap();
    assert_eq!(fs::metadata(folder.join("upper/data")).unwrap().len(), bytes());
    if let (Ok(copy), Ok(original)) = (file::age(merged.as_raw_fd()), file::age(lower.as_raw_fd()))
    {
        assert!(copy < original, "by this it is known: {copy:?}, {original:?}");
    }
}
