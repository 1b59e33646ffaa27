//! What policyd is late for, as it gets no processor or as several commands start one, is done nevertheless.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::guest::musl;
use discnice_tests::process::{Group, only_child, run, send, until};
use discnice_tests::{product, skip};
use tempfile::TempDir;

/// A policyd of a test's own, in a runtime directory that is made for it.
struct Daemon {
    keeper: Group,
    runtime: PathBuf,
    _folder: TempDir,
}

impl Daemon {
    fn start() -> Self {
        let folder = product::folder();
        let runtime = folder.path().join("run");
        run(product::as_user("mkdir").args(["-m", "700"]).arg(&runtime)).succeeded();
        let mut command = product::discnice(["policyd", "--idle", "20s"]);
        let keeper = Group::start_silent(command.env("XDG_RUNTIME_DIR", &runtime));
        let daemon = Self { keeper, runtime, _folder: folder };
        until("it watches nothing", || only_child(daemon.keeper.id()).is_some());
        daemon
    }

    fn signal(&self, signal: i32) {
        let worker = only_child(self.keeper.id()).expect("it watches");
        send(worker.cast_signed(), signal);
    }

    /// Starts a shell in a class of its own, which becomes a program once its input ends.
    fn waiting_shell(&self, options: &[&str], program: &Path) -> (Child, ChildStdin) {
        let script = "echo here; read line; \"$@\"; true";
        let words = ["--", "sh", "-c", script, "sh", program.to_str().expect("UTF-8"), "/dev/null"];
        let mut command = product::discnice(["run", "--disk", "4M"]);
        command.args(options).args(words).env("XDG_RUNTIME_DIR", &self.runtime);
        let mut shell =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut here = [0; 5];
        shell.stdout.as_mut().expect("piped").read_exact(&mut here).expect("it is there");
        let input = shell.stdin.take().expect("piped");
        (shell, input)
    }
}

/// As on a machine on which the watcher gets no processor for a while.
#[test]
fn a_program_waits_for_a_watcher_that_is_late() {
    const LATE: Duration = Duration::from_millis(400);
    let daemon = Daemon::start();
    let folder = product::folder();
    let Some(reader) = musl(folder.path(), "reader.c") else { skip!("no musl-gcc") };
    let (mut shell, input) = daemon.waiting_shell(&[], &reader);
    // policyd knows the shell by then.
    thread::sleep(Duration::from_millis(300));
    daemon.signal(libc::SIGSTOP);
    let begun = Instant::now();
    drop(input);
    thread::sleep(LATE);
    daemon.signal(libc::SIGCONT);
    assert!(shell.wait().expect("it ends").success());
    let took = begun.elapsed();
    // Bare, and unheld, the program ends within some milliseconds.
    assert!(took >= LATE, "took {took:?}");
}

/// As when several commands begin at once while there is no daemon: each starts one, and does not wait for long.
#[test]
fn a_daemon_that_is_not_needed_hands_over_what_it_was_started_for() {
    let daemon = Daemon::start();
    // policyd is not asked to watch this class.
    let (mut shell, input) = daemon.waiting_shell(&["--mechanism", "preload"], Path::new("cat"));
    // The class, and what all classes share, of which the daemon says that it is none.
    let maps = fs::read_to_string(format!("/proc/{}/maps", shell.id())).expect("it lives");
    let segments = maps.lines().filter(|line| line.contains("/SYSV"));
    let number = |line: &str| line.split_whitespace().nth(4)?.parse::<u64>().ok();
    let blocks: BTreeSet<u64> = segments.filter_map(number).collect();
    assert!(!blocks.is_empty(), "{maps}");
    let took = blocks.iter().map(|block| {
        let mut other = product::discnice(["policyd", "--watch", &format!("{block:x}")]);
        let begun = Instant::now();
        run(other.env("XDG_RUNTIME_DIR", &daemon.runtime)).succeeded();
        begun.elapsed()
    });
    // It ends once it is answered that the class is watched; otherwise it waits for a second to take the place of the other.
    let soonest = took.min().expect("a block");
    assert!(soonest < Duration::from_millis(900), "{soonest:?}");
    drop(input);
    assert!(shell.wait().expect("it ends").success());
}
