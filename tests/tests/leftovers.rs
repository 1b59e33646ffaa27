//! policyd keeps nothing of the processes and classes that have been.
//!
//! `make leftovers` runs it with 50,000 commands and 10,000 classes and shows the figures.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use discnice_tests::process::await_child;
use discnice_tests::product;

/// Descriptors more than before are no leak yet: helpers are started when they are first needed.
const DESCRIPTORS: usize = 8;
/// KiB of resident memory more than before are none: the allocator keeps some.
const MEMORY: usize = 4 << 10;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

struct Daemon(Child);

impl Daemon {
    fn start(folder: &Path) -> Self {
        let mut made = product::as_user("mkdir");
        assert!(made.args(["-m", "700"]).arg(folder.join("run")).status().unwrap().success());
        let mut command = product::discnice(["policyd", "--idle", "60"]);
        Self(command.env("XDG_RUNTIME_DIR", folder.join("run")).spawn().unwrap())
    }

    /// The process that watches: the daemon's only child.
    fn worker(&self) -> u32 {
        await_child(self.0.id())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Debug)]
struct Figures {
    worker: u32,
    /// What they refer to, as /proc shows it.
    descriptors: Vec<String>,
    memory: usize,
    threads: usize,
}

/// What the daemon has, a moment after it has had something to do.
fn figures(daemon: &Daemon) -> Figures {
    std::thread::sleep(Duration::from_secs(3));
    let worker = daemon.worker();
    let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let field = |label| {
        let line = status.lines().find_map(|line| line.strip_prefix(label)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let links = fs::read_dir(format!("/proc/{worker}/fd")).unwrap();
    let names = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    let descriptors = names.map(|name| name.display().to_string()).collect();
    Figures { worker, descriptors, memory: field("VmRSS:"), threads: field("Threads:") }
}

fn run(command: &mut Command, folder: &Path) {
    assert!(command.env("XDG_RUNTIME_DIR", folder.join("run")).status().unwrap().success());
}

/// So many short commands in one class.
fn commands(folder: &Path, count: usize) {
    let name = format!("leftovers-{}", std::process::id());
    let script = format!("i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done");
    let words = ["run", "--class", &name, "--disk", "100M", "--", "sh", "-c", &script];
    run(&mut product::discnice(words), folder);
    run(&mut product::discnice(["class", "rm", "--force", &name]), folder);
}

/// So many classes after each other.
fn classes(folder: &Path, count: usize) {
    let script = "i=0; while [ $i -lt $2 ]; do $1 run --disk 100M -- /bin/true; i=$((i+1)); done";
    let mut shell = product::as_user("sh");
    shell.args(["-c", script, "sh"]).arg(product::program()).arg(count.to_string());
    run(&mut shell, folder);
}

fn same(before: &Figures, after: &Figures) {
    let told = format!("before {before:?}, after {after:?}");
    assert_eq!((before.worker, before.threads), (after.worker, after.threads), "{told}");
    assert!(after.descriptors.len() <= before.descriptors.len() + DESCRIPTORS, "{told}");
    assert!(after.memory <= before.memory + MEMORY, "{told}");
    let shown = |figures: &Figures| {
        format!("{} descriptors, {} KiB", figures.descriptors.len(), figures.memory)
    };
    eprintln!("before {}, after {}", shown(before), shown(after));
}

#[test]
fn nothing_is_left_of_short_commands_and_of_classes() {
    let folder = product::folder();
    let daemon = Daemon::start(folder.path());
    daemon.worker();
    commands(folder.path(), 200);
    classes(folder.path(), 10);
    let begun = figures(&daemon);
    commands(folder.path(), number("DISCNICE_COMMANDS", 3_000));
    let commanded = figures(&daemon);
    same(&begun, &commanded);
    classes(folder.path(), number("DISCNICE_CLASSES", 300));
    same(&commanded, &figures(&daemon));
}
