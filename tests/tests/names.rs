//! Changes of names and inodes, by name and by number (syscall(2)): they give way, and what they take away is not charged.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, run};
use discnice_tests::{class::Class, cold, product};

/// Runs the guest in a class: so many times it makes a file of so many KiB, and changes it in this way.
fn change(class: &Class, guest: &Path, way: &str, (times, size): (u32, u32)) {
    let folder = product::folder();
    let mut command = product::discnice(["run", "--class", class.name(), "--"]);
    command.arg(guest).args([way, &times.to_string(), &size.to_string()]);
    run(command.current_dir(folder.path())).succeeded();
}

/// How often a class that gives way waits, when it makes more changes in this way than pass together.
fn waits(guest: &Path, way: &str) -> u64 {
    let class = Class::new("2M");
    let made = ["class", "set", class.name(), "--disk", "2M", "--when", "busy"];
    run(&mut product::discnice(made)).succeeded();
    change(&class, guest, way, (80, 0));
    class.show()["waits"].as_u64().expect("a number")
}

/// Ways that change names or inodes: for each row of the table of numbers one.
const CHANGES: &[&str] = &[
    "truncate-by-name",
    "mkdirat",
    "symlinkat",
    "linkat",
    "fchmodat",
    "lsetxattr",
    "exchange",
    "unlinkat",
    "renameat2",
    "truncate",
    "openat-trunc",
    "openat2-excl",
];

#[test]
fn changes_wait_while_others_use_the_disk() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let theirs = folder.path().join("theirs");
    cold::make(&theirs, 64 << 20).expect("a file");
    // Not all the time: the busier the disk, the longer each way waits.
    let script = format!(
        "while dd if={} of=/dev/null bs=1M count=8 iflag=direct; do sleep 0.02; done",
        theirs.display()
    );
    let _others = Group::start_silent(Command::new("sh").args(["-c", &script]));
    let begun = Instant::now();
    while waits(&guest, "unlink-by-name") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "never");
    }
    // Changes that the disk itself holds up, by a commit of its journal, may have paid meanwhile.
    let never = |way: &&&str| (0..3).all(|_| waits(&guest, way) == 0);
    let free: Vec<&&str> = CHANGES.iter().filter(never).collect();
    assert!(free.is_empty(), "they do not wait: {free:?}");
}

/// Ways that take away what a file holds. Those without `at` have numbers on older machines alone.
const REMOVALS: &[&str] = &[
    "unlink-by-name",
    "truncate-by-name",
    "unlinkat",
    "renameat2",
    "truncate",
    "ftruncate",
    "openat-trunc",
    "openat2-trunc",
    #[cfg(target_arch = "x86_64")]
    "unlink",
    #[cfg(target_arch = "x86_64")]
    "rename",
    #[cfg(target_arch = "x86_64")]
    "creat",
    #[cfg(target_arch = "x86_64")]
    "open-trunc",
];

#[test]
fn what_is_taken_away_unwritten_is_not_charged() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let written = |way| {
        let class = Class::new("unlimited");
        run(&mut class.command(["true"])).succeeded();
        change(&class, &guest, way, (16, 1024));
        class.charged().1
    };
    let all = REMOVALS.iter().map(|way| (way, written(way)));
    let charged: Vec<(&&str, u64)> = all.filter(|(_, bytes)| *bytes > 4 << 20).collect();
    assert!(charged.is_empty(), "bytes of 16 MiB: {charged:?}");
}

fn guest(folder: &Path) -> Option<PathBuf> {
    Compiler::new(folder).map(|compiler| compiler.compile("names.c"))
}
