//! Calls by which the kernel reads a file and copies nothing to the program are held, by whichever of libc's functions they are
//! made.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip, together};

/// The limit, in bytes a second, and how much is read.
const RATE: usize = 4 << 20;
const SIZE: usize = 8 << 20;
/// What a class may take before it is held: its credit, the last piece, and what starting the program reads ahead.
const START: usize = 3 << 19;
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
fn measure(guest: &Path, way: &str, data: &[&Path]) -> (u64, Duration) {
    let class = Class::new(&RATE.to_string());
    // What DiscNice's own program reads to start is paid here.
    run(&mut class.command(["true"])).succeeded();
    let (before, _) = class.charged();
    let mut command = class.command([guest.as_os_str(), way.as_ref()]);
    let took = run(command.args(data)).succeeded().text();
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
        (way, measure(&guest, way, &[&data]))
    });
    if all.iter().any(|(_, (charged, _))| *charged < SIZE as u64 / 2) {
        skip!("the kernel keeps no account of the disk here, or a file stayed cached: {all:?}");
    }
    let ahead: Vec<_> = all.iter().filter(|(_, (_, took))| *took < least).collect();
    assert!(ahead.is_empty(), "not held to {RATE} bytes a second: {ahead:?}");
}

/// A file system on which files can share blocks, mounted on a folder and unmounted when this is dropped.
struct Shared(PathBuf);

impl Shared {
    fn on(folder: &Path) -> Option<Self> {
        let (image, at) = (folder.join("image"), folder.join("disk"));
        fs::create_dir(&at).expect("our folder");
        File::create(&image).expect("our folder").set_len(320 << 20).expect("a sparse file");
        let does = |command: &mut Command| command.output().is_ok_and(|out| out.status.success());
        let mounted = does(Command::new("mkfs.xfs").arg("-q").arg(&image))
            && does(Command::new("mount").args(["-o", "loop"]).args([&image, &at]));
        mounted.then(|| Self(at))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_the_kernel_compares_to_share_it_is_held() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
    let guest = compiler.compile("ahead.c");
    let Some(disk) = Shared::on(folder.path()) else {
        skip!("needs the right to mount, and mkfs.xfs");
    };
    // Of one size, they are of the same bytes.
    let files = ["one", "two"].map(|name| disk.0.join(name));
    let least = Duration::from_secs_f64((2 * SIZE - 2 * START) as f64 / RATE as f64);
    for way in ["dedupe", "number-dedupe"] {
        for file in &files {
            cold::make(file, SIZE).expect("room for a file");
            fs::set_permissions(file, Permissions::from_mode(0o666)).expect("our file");
        }
        let (charged, took) = measure(&guest, way, &files.each_ref().map(PathBuf::as_path));
        assert!(charged >= 2 * SIZE as u64, "{way}: {charged} bytes are not both files");
        assert!(took > least, "{way}: {took:?} at {RATE} bytes a second");
    }
}
