//! `discnice admit`: the grant reaches the command, one after the other, and never for ever.

mod graybox_support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use graybox_support::{Scratch, run};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_grant_reaches_the_command() {
    let scratch = Scratch::new();
    let out = run(scratch
        .discnice(["admit", "--min", "1M", "--max", "64M", "--multiple", "1M"])
        .args(["--", "sh", "-c", "echo $DISCNICE_MEMORY {}; exit 7"]));
    assert_eq!(out.status, 7, "{}", out.stderr);
    assert_eq!(out.stdout, "67108864 67108864\n");
}

#[test]
fn the_command_finds_signals_and_descriptors_as_they_were() {
    const BEGIN: &str = "trap '' PIPE USR1; exec env --block-signal=USR2 \"$@\" <&-";
    const LOOK: &str =
        "test -e /proc/$$/fd/0 && echo open; exec grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let scratch = Scratch::new();
    let told = |words: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", BEGIN, "sh"]).args(words).args(["sh", "-c", LOOK]);
        run(command.env("XDG_RUNTIME_DIR", scratch.path(""))).stdout
    };
    let discnice = graybox_support::discnice();
    let admit = [discnice.to_str().unwrap(), "admit", "--min", "1M", "--max", "1M", "--"];
    let plain = told(&[]);
    assert_eq!(plain.lines().count(), 2, "both lines, and no standard input: {plain}");
    assert_eq!(told(&admit), plain);
}

#[test]
fn senseless_demands_and_missing_commands() {
    let scratch = Scratch::new();
    for (words, status) in [
        (&["--min", "2G", "--max", "1G", "--", "true"][..], 125),
        (&["--min", "99999999999T", "--max", "1G", "--", "true"], 125),
        (&["--min", "1M", "--max", "18446744073709551616", "--", "true"], 125),
        (&["--min", "1M", "--max", "18446744073709551615B", "--", "true"], 125),
        (&["--min", "0", "--max", "1G", "--", "true"], 125),
        (&["--min", "1M", "--max", "1G", "--multiple", "0", "--", "true"], 125),
        (&["--min", "5K", "--max", "9K", "--multiple", "10K", "--", "true"], 125),
        (&["--min", "1M", "--max", "1M"], 125),
        (&["--min", "1M", "--max", "1M", "--", "no-such-program-here"], 127),
        (&["--min", "1M", "--max", "1M", "--", "/"], 126),
        (&["--min", "1024T", "--max", "2048T", "--timeout", "1h", "--", "true"], 125),
    ] {
        let out = run(scratch.discnice(["admit"]).args(words));
        assert_eq!(out.status, status, "{words:?}: {}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{words:?}: {}", out.stderr);
    }
}

#[test]
fn without_a_place_for_the_ledger() {
    let scratch = Scratch::new();
    scratch.write("file", b"");
    let mut admit = scratch.discnice(["admit", "--min", "1M", "--max", "1M", "--", "true"]);
    let out = run(admit.env("XDG_RUNTIME_DIR", scratch.path("file")));
    assert_eq!((out.status, out.stderr.as_str()), (0, ""), "another place serves");
    let ledger = scratch.path("discnice/memory-grants");
    let private = PermissionsExt::from_mode(0o700);
    fs::create_dir(scratch.path("discnice")).unwrap();
    fs::set_permissions(scratch.path("discnice"), private).unwrap();
    let mut wrong: Vec<Box<dyn Fn()>> = vec![Box::new(|| fs::create_dir(&ledger).unwrap())];
    wrong.push(Box::new(|| symlink(scratch.path("file"), &ledger).unwrap()));
    wrong.push(Box::new(|| {
        assert!(Command::new("mkfifo").arg(&ledger).status().unwrap().success());
    }));
    for make in wrong {
        make();
        let out = run(&mut scratch.discnice(["admit", "--min", "1M", "--max", "1M", "--", "true"]));
        let line = format!(
            "discnice: cannot open the ledger of memory grants: {} is no plain file; move it away\n",
            ledger.display()
        );
        assert_eq!((out.status, out.stderr), (125, line));
        fs::remove_dir(&ledger).or_else(|_| fs::remove_file(&ledger)).unwrap();
    }
}

//= gray-box/4.3-wait
#[test]
fn two_that_do_not_fit_together_run_one_after_the_other() {
    let scratch = Scratch::new();
    let available = discnice_graybox::mac::facts().available;
    let (min, max) = ((available / 3 * 2).to_string(), available.to_string());
    let start = Instant::now();
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            scratch
                .discnice(["admit", "--min", &min, "--max", &max, "--", "sleep", "0.5"])
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert!(start.elapsed() >= Duration::from_secs(1), "they ran at the same time");
}

/// A command that holds most of the memory that there is, and one that waits behind it; ended when dropped.
struct Queue([Child; 2]);

impl Queue {
    fn begin(scratch: &Scratch) -> Self {
        let available = discnice_graybox::mac::facts().available;
        let (half, most) = ((available / 2).to_string(), (available / 10 * 9).to_string());
        let admit = |min: &str, command: &[&str]| {
            let sizes = ["--min", min, "--max", &most, "--multiple", "1"];
            let mut admit = scratch.discnice(["admit"]);
            admit
                .args(sizes)
                .arg("--")
                .args(command)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let holder = admit(&most, &["sleep", "60"]);
        let ledger = scratch.path("discnice/memory-grants");
        let slots = || fs::metadata(&ledger).map_or(0, |file| file.len() / 64);
        until(|| fs::read_to_string(format!("/proc/{}/comm", holder.id())).unwrap() == "sleep\n");
        let waiter = admit(&half, &["true"]);
        until(|| slots() == 2);
        Self([holder, waiter])
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0[1]), signal).unwrap();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const BEHIND: [&str; 9] = ["admit", "--min", "1M", "--max", "1M", "--timeout", "0", "--", "true"];

#[test]
fn a_killed_waiter_does_not_block_the_queue() {
    let scratch = Scratch::new();
    let queue = Queue::begin(&scratch);
    assert_eq!(run(&mut scratch.discnice(BEHIND)).status, 124, "passed one that was first");
    queue.signal(Signal::KILL);
    until(|| run(&mut scratch.discnice(BEHIND)).status == 0);
}

#[test]
fn a_stopped_waiter_does_not_block_the_queue() {
    let scratch = Scratch::new();
    let mut queue = Queue::begin(&scratch);
    queue.signal(Signal::STOP);
    until(|| run(&mut scratch.discnice(BEHIND)).status == 0);
    queue.signal(Signal::CONT);
    queue.0[0].kill().unwrap();
    assert!(queue.0[1].wait().unwrap().success(), "it keeps its place");
}

#[test]
fn a_time_limit_holds_while_the_ledger_is_locked() {
    let scratch = Scratch::new();
    assert_eq!(run(&mut scratch.discnice(BEHIND)).status, 0);
    // As by a process that was stopped while it held the lock.
    let ledger = fs::File::open(scratch.path("discnice/memory-grants")).unwrap();
    rustix::fs::flock(&ledger, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let start = Instant::now();
    let mut waiter = scratch.discnice(BEHIND).stderr(Stdio::null()).spawn().unwrap();
    while start.elapsed() < Duration::from_secs(10) && waiter.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = waiter.kill();
    assert_eq!(waiter.wait().unwrap().code(), Some(124));
}

#[test]
fn more_than_there_can_ever_be_is_refused() {
    let scratch = Scratch::new();
    let out = run(&mut scratch.discnice(["admit", "--min", "100T", "--max", "200T", "--", "true"]));
    assert_eq!(out.status, 125, "{}", out.stderr);
    assert!(out.stderr.starts_with("discnice: --min is 100 TiB, but at most "), "{}", out.stderr);
    assert!(out.stderr.ends_with(" of memory can come free here; lower --min\n"), "{}", out.stderr);
}

#[test]
fn one_that_waits_says_so_once() {
    let scratch = Scratch::new();
    let mut queue = Queue::begin(&scratch);
    std::thread::sleep(Duration::from_secs(2));
    queue.signal(Signal::KILL);
    let mut said = String::new();
    queue.0[1].stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.starts_with("discnice: waiting until "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
