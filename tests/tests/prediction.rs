//! A prediction that goes wrong may cost accuracy until it is settled, never correctness: files that change
//! while they are read, and kernels or containers without the system calls that predictions are made of.

use std::path::Path;
use std::time::{Duration, Instant};

use discnice_tests::bare::{Place, compare_with, guest, nothing};
use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::{cold, product, skip};

const SIZE: usize = 4 << 20;
/// Takes much longer at the limit than the program alone.
const LARGE: usize = 32 << 20;

#[test]
fn files_change_while_they_are_read() {
    let Some(bare) = guest("changing.c", &[], nothing) else { skip!("no compiler") };
    assert_eq!(bare.status, Some(0), "the guest itself: {bare:?}");
}

/// What predictions, read-ahead and write-back of our own are made of.
const CALLS: [(&str, &[i64]); 12] = [
    ("cachestat", &[451]),
    ("mincore", &[libc::SYS_mincore]),
    ("cachestat and mincore", &[451, libc::SYS_mincore]),
    ("fadvise64", &[libc::SYS_fadvise64]),
    ("readahead", &[libc::SYS_readahead]),
    ("sync_file_range", &[libc::SYS_sync_file_range]),
    ("fdatasync", &[libc::SYS_fdatasync]),
    ("madvise", &[libc::SYS_madvise]),
    ("getrusage", &[libc::SYS_getrusage]),
    ("ioctl (FIEMAP)", &[libc::SYS_ioctl]),
    ("lseek", &[libc::SYS_lseek]),
    (
        "all of them",
        &[
            451,
            libc::SYS_mincore,
            libc::SYS_fadvise64,
            libc::SYS_readahead,
            libc::SYS_sync_file_range,
            libc::SYS_fdatasync,
            libc::SYS_madvise,
            libc::SYS_getrusage,
            libc::SYS_ioctl,
        ],
    ),
];

fn cold_file(folder: &Path) {
    cold::make(&folder.join("cold"), SIZE).expect("a file");
}

fn large_cold_file(folder: &Path) {
    cold::make(&folder.join("cold"), LARGE).expect("a file");
}

#[test]
fn system_calls_are_refused() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("refused.c");
    let script = "head -c 300000 cold | md5sum; cp cold copy; cat cold copy | md5sum; rm copy";
    for (name, numbers) in CALLS {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        for errno in [libc::ENOSYS, libc::EPERM] {
            let (program, numbers, errno) =
                (program.to_str().expect("UTF-8"), numbers.join(","), errno.to_string());
            let words = [program, &numbers, &errno, "sh", "-c", script];
            let limits = ["account", "predict", "auto"].map(|estimator| ("50M", Some(estimator)));
            let bare = compare_with(&words, cold_file, &limits);
            assert_eq!(bare.text().lines().count(), 2, "without {name}: {bare:?}");
        }
    }
}

#[test]
fn what_is_read_is_held_without_the_calls_that_tell_about_the_cache() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("refused.c");
    // What the shell's account says at last has that of cat in it.
    let script = "cat cold >/dev/null; cat /proc/$$/io; :";
    let words = [program.to_str().expect("UTF-8"), "451,27", "38", "sh", "-c", script];
    for estimator in ["account", "predict", "auto"] {
        let class = Class::estimated("50M", estimator);
        let begun = Instant::now();
        let ended = Place::default().run(&mut class.command(words), large_cold_file).succeeded();
        let account = ended.text();
        let read = account.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        // More than the file where read-ahead was dropped when the process was stopped, and read again.
        let read: usize = read.expect("an account").parse().expect("bytes");
        assert!(read >= LARGE, "{account}");
        let charged = class.charged().0 as usize;
        assert!((LARGE..=read / 8 * 9).contains(&charged), "{estimator}: {charged} of {read}");
        assert!(
            begun.elapsed() > Duration::from_millis(550),
            "32 MiB at 50 MiB/s: {:?}",
            begun.elapsed()
        );
    }
}

/// A page for each section of `sections.c`, in bytes.
const SECTIONS: u64 = 64 * 4096;

#[test]
fn a_stream_that_seeks_is_followed() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let program = compiler.compile("sections.c");
    let class = Class::estimated("unlimited", "predict");
    let _ = Place::default().run(&mut class.command([program]), nothing).succeeded();
    // What is not followed misses all sections but one, or has the holes between them charged.
    assert_eq!(class.charged().1, SECTIONS);
}
