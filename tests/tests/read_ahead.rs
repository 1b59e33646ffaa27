//! Calls by which the kernel reads a file and copies nothing to the program are held, by whichever of libc's functions they are
//! made.

use std::path::Path;
use std::time::Duration;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip, together};

/// The limit, in bytes a second, and how much is read.
const RATE: usize = 4 << 20;
const SIZE: usize = 8 << 20;
/// What a class may take before it is held: the last piece, and what starting the program reads ahead.
const START: usize = 1 << 20;
/// So many guests are held at a time: they mostly wait.
const TOGETHER: usize = 3;

const WAYS: &[&str] = &[
    "readahead",
    "number-readahead",
    "fadvise",
    "number-fadvise",
    "willneed",
    "number-willneed",
    "populate-read",
    "number-populate-read",
    "populate-write",
    "number-populate-write",
    "mmap",
    "number-mmap",
];

/// Returns how much was charged to a guest that read a cold file in this way, and how long it took to ask for it.
fn measure(guest: &Path, way: &str, data: &Path) -> (u64, Duration) {
    let class = Class::new(&RATE.to_string());
    // What DiscNice's own program reads to start is paid here.
    run(&mut class.command(["true"])).succeeded();
    let (before, _) = class.charged();
    let words = [guest.as_os_str(), way.as_ref(), data.as_os_str()];
    let took = run(&mut class.command(words)).succeeded().text();
    let took = Duration::from_millis(took.trim().parse().expect("milliseconds"));
    (class.charged().0 - before, took)
}

//= rate-windows/3.2-hooks
#[test]
fn what_the_kernel_reads_ahead_of_the_program_is_held() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
    let guest = compiler.compile("ahead.c");
    let least = Duration::from_secs_f64((SIZE - START) as f64 / RATE as f64);
    let all = together::each(&[(); TOGETHER], WAYS.iter(), |(), way| {
        let data = folder.path().join(way);
        cold::make(&data, SIZE).expect("room for a file");
        (way, measure(&guest, way, &data))
    });
    if all.iter().any(|(_, (charged, _))| *charged < SIZE as u64 / 2) {
        skip!("the kernel keeps no account of the disk here, or a file stayed cached: {all:?}");
    }
    let ahead: Vec<_> = all.iter().filter(|(_, (_, took))| *took < least).collect();
    assert!(ahead.is_empty(), "not held to {RATE} bytes a second: {ahead:?}");
}
