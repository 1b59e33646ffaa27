//! Changes of names and inodes give way.

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

/// Ways that change names or inodes.
const CHANGES: &[&str] = &["truncate-by-name"];

#[test]
fn changes_wait_while_others_use_the_disk() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let theirs = folder.path().join("theirs");
    cold::make(&theirs, 64 << 20).expect("a file");
    let script =
        format!("while dd if={} of=/dev/null bs=1M iflag=direct; do :; done", theirs.display());
    let _others = Group::start_silent(Command::new("sh").args(["-c", &script]));
    let begun = Instant::now();
    while waits(&guest, "unlink-by-name") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "never");
    }
    let free: Vec<&&str> = CHANGES.iter().filter(|way| waits(&guest, way) == 0).collect();
    assert!(free.is_empty(), "they do not wait: {free:?}");
}

fn guest(folder: &Path) -> Option<PathBuf> {
    Compiler::new(folder).map(|compiler| compiler.compile("names.c"))
}
