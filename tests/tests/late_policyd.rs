//! What policyd is late for, as it gets no processor or as several commands start one, is done nevertheless.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::guest::musl;
use discnice_tests::process::{Group, await_child, run, send};
use discnice_tests::{product, skip};
use tempfile::TempDir;

/// A policyd of a test's own, in a runtime directory that is made for it, and the process of it that watches.
struct Daemon {
    _keeper: Group,
    worker: u32,
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
        let worker = await_child(keeper.id());
        Self { _keeper: keeper, worker, runtime, _folder: folder }
    }

    fn signal(&self, signal: i32) {
        send(self.worker.cast_signed(), signal);
    }

    /// Starts a command in a class of its own, which says "here", and does something once its input ends.
    fn waiting(&self, options: &[&str], words: &[&str]) -> (Child, ChildStdin) {
        let mut command = product::discnice(["run", "--disk", "4M"]);
        command.args(options).arg("--").args(words).env("XDG_RUNTIME_DIR", &self.runtime);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut here = [0; 5];
        child.stdout.as_mut().expect("piped").read_exact(&mut here).expect("it is there");
        let input = child.stdin.take().expect("piped");
        (child, input)
    }
}

/// Becomes or starts the program that it is given.
const SHELL: [&str; 4] = ["sh", "-c", "echo here; read line; \"$@\"; true", "sh"];
const PYTHON: [&str; 3] = [
    "/usr/bin/python3",
    "-c",
    "import os, sys; print('here', flush=True); sys.stdin.read(); \
     os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)",
];

/// As on a machine on which the watcher gets no processor for a while.
#[test]
fn a_program_waits_for_a_watcher_that_is_late() {
    const LATE: Duration = Duration::from_millis(400);
    let daemon = Daemon::start();
    let folder = product::folder();
    let Some(reader) = musl(folder.path(), "reader.c") else { skip!("no musl-gcc") };
    let program = [reader.to_str().expect("UTF-8"), "/dev/null"];
    for starter in [&SHELL[..], &PYTHON] {
        let (mut child, input) = daemon.waiting(&[], &[starter, &program].concat());
        // policyd knows the process by then.
        thread::sleep(Duration::from_millis(300));
        daemon.signal(libc::SIGSTOP);
        drop(input);
        // Bare, and if it does not wait, the program ends within some milliseconds.
        thread::sleep(LATE);
        let ended = child.try_wait().expect("it is ours");
        daemon.signal(libc::SIGCONT);
        assert!(ended.is_none(), "{starter:?}: {ended:?}");
        assert!(child.wait().expect("it ends").success());
    }
}

/// As when several commands begin at once while there is no daemon: each starts one, and does not wait for long.
#[test]
fn a_daemon_that_is_not_needed_hands_over_what_it_was_started_for() {
    let daemon = Daemon::start();
    // policyd is not asked to watch this class.
    let (mut shell, input) =
        daemon.waiting(&["--mechanism", "preload"], &[&SHELL[..], &["cat"]].concat());
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
