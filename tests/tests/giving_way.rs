//! Giving way: the polite default, guests, and classes that are held only while others are busy.

use std::fs::{self};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, run};
use discnice_tests::readers::Readers;
use discnice_tests::{class::Class, cold, product};

/// One test at a time: each judges what other use the disk has.
static TURN: Mutex<()> = Mutex::new(());

/// What a process is, as its own shell sees it: scheduling policy (field 41 of proc_pid_stat(5)).
const POLICY: &str = "cut -d' ' -f41 /proc/self/stat";
/// `SCHED_IDLE` of sched(7).
const IDLE: &str = "5\n";

//= rate-windows/2-guest-cpu
//= ms-manners/3-lower-priority
#[test]
fn without_numbers_a_job_is_a_polite_guest() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = product::discnice(["run", "--", "sh", "-c", POLICY]);
    assert_eq!(run(&mut command).succeeded().text(), IDLE);
    let mut command = product::discnice(["run", "--guest=no", "--", "sh", "-c", POLICY]);
    assert_eq!(run(&mut command).succeeded().text(), "0\n");
    let mut command = product::discnice(["run", "--disk", "5M", "--", "sh", "-c", POLICY]);
    assert_eq!(run(&mut command).succeeded().text(), "0\n", "who gives numbers gets just those");
}

//= discnice/1-idle-use
//= rate-windows/4-guest-rate
#[test]
fn the_polite_default_is_a_tenth_while_others_are_busy() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let class = Class::new("unlimited");
    let name = class.name();
    let mut polite = product::discnice(["run", "--class", name, "--", "true"]);
    // Where nothing was measured, a hard disk is assumed.
    polite.env("XDG_CACHE_HOME", "/nonexistent");
    run(&mut polite).succeeded();
    let shown = class.show();
    assert_eq!(shown["limit_total"], 10_000_000);
    assert_eq!(shown["when"], "busy");
    assert_eq!(shown["guest"], true);
    // Numbers that are given later change nothing else.
    run(&mut product::discnice(["class", "set", name, "--disk", "7M"])).succeeded();
    assert_eq!(class.show()["when"], "busy");
}

#[test]
fn a_guest_class_makes_guests_of_all_that_enter_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let class = Class::new("unlimited");
    run(&mut product::discnice(["class", "set", class.name(), "--guest"])).succeeded();
    assert_eq!(run(&mut class.command(["sh", "-c", POLICY])).succeeded().text(), IDLE);
}

//= rate-windows/2-run-time
//= gray-box/4.3.4-malloc
#[test]
fn memory_is_bounded_for_guests_and_on_request() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let class = Class::new("unlimited");
    let set = |limits: &[&str]| {
        run(&mut product::discnice([&["class", "set", class.name()], limits].concat())).succeeded();
        let shown = class.show();
        [&shown["memory_low"], &shown["memory_high"]].map(serde_json::Value::as_u64)
    };
    assert_eq!(set(&["--disk", "unlimited"]), [None, None]);
    let [low, high] = set(&["--guest"]);
    assert!(low.zip(high).is_some_and(|(low, high)| low > 0 && high.abs_diff(2 * low) < 2));
    assert_eq!(set(&["--memory-high", "256M"]), [Some(128 << 20), Some(256 << 20)]);
    assert_eq!(set(&["--memory-low", "64M"]), [Some(64 << 20), Some(256 << 20)]);
    assert_eq!(class.show()["memory_held"], false);
    assert_eq!(set(&["--memory-high", "unlimited"]), [None, None]);
}

/// Starts a process that reads a file from the disk again and again, by no rule of ours.
fn start_reading(path: &str) -> Group {
    let script = format!("while dd if={path} of=/dev/null bs=1M iflag=direct; do :; done");
    Group::start_silent(Command::new("sh").args(["-c", &script]))
}

/// Waits until `discnice class show` says so; returns how long that took.
fn wait_for(class: &Class, throttled: bool) -> Duration {
    let begun = Instant::now();
    while class.show()["throttled"] != throttled {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {}", class.show());
        sleep(Duration::from_millis(10));
    }
    begun.elapsed()
}

//= rate-windows/3.1-unfettered
#[test]
fn a_class_is_held_while_others_read_its_disk() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (class, folder) = (Class::new("unlimited"), product::folder());
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    for path in [&ours, &theirs] {
        cold::make(path, 64 << 20).expect("a file");
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("our file");
    }
    run(&mut product::discnice(["class", "set", class.name(), "--disk", "2M", "--when", "busy"]))
        .succeeded();
    // A job that has something to read all the time.
    let script = format!(
        "while :; do dd if={} of=/dev/null bs=64k iflag=direct 2>/dev/null; sleep 0.01; done",
        ours.display()
    );
    let run = ["run", "--class", class.name(), "--", "sh", "-c", &script];
    let _job = Group::start_silent(&mut product::discnice(run));
    // Whatever else this machine does: at some time nothing reads for a second.
    wait_for(&class, false);
    let foreground = start_reading(theirs.to_str().expect("UTF-8"));
    wait_for(&class, true);
    let before = class.charged().0;
    sleep(Duration::from_secs(2));
    let held = class.charged().0 - before;
    assert!(class.show()["throttled"] == true && held < 6 << 20, "{held} bytes in 2 s at 2 MiB/s");
    drop(foreground);
    wait_for(&class, false);
}

/// Jobs that make no call that our library could see in them, or for which it could look whether others are busy.
#[test]
fn whatever_the_mechanism_a_class_is_held_while_others_read_its_disk() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Readers { ours, theirs, dynamic, fixed, .. } = &match Readers::new() {
        Ok(readers) => readers,
        Err(why) => skip!("{why}"),
    };
    let child = format!("{fixed} {ours}; :");
    for (what, words) in [
        ("the command, below a filter", vec![fixed.as_str(), ours]),
        ("a child, held from outside", vec!["sh", "-c", &child]),
        ("page faults", vec![dynamic.as_str(), ours, "mapped"]),
    ] {
        let class = Class::new("unlimited");
        let limits = ["class", "set", class.name(), "--disk", "2M", "--when", "busy"];
        run(&mut product::discnice(limits)).succeeded();
        let run = ["run", "--class", class.name(), "--"];
        let job = Group::start_silent(&mut product::discnice([&run[..], &words].concat()));
        // Without pauses, in which the job may come back.
        let foreground = Group::start_silent(Command::new(dynamic).arg(theirs));
        wait_for(&class, true);
        sleep(Duration::from_millis(500));
        let before = class.charged().0;
        sleep(Duration::from_secs(2));
        let held = class.charged().0 - before;
        // Some of it is what was on its way when the others came. At full speed it is hundreds.
        assert!(held < 32 << 20, "{what}: {held} bytes in 2 s at 2 MiB/s");
        drop((foreground, job));
    }
}

#[test]
fn whatever_the_mechanism_a_writer_that_gives_way_leaves_little_unwritten() {
    const WRITTEN: u64 = 160;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(made) = compiler.compile_with("dirties.c", &["-static"]) else {
        skip!("no static libc")
    };
    let fixed = folder.path().join("fixed");
    fs::rename(made, &fixed).expect("a program");
    let (dynamic, fixed) = (compiler.compile("dirties.c"), fixed.to_str().expect("UTF-8"));
    let child = format!("{fixed} \"$@\"; :");
    for words in [
        &[dynamic.to_str().expect("UTF-8")][..],
        &[fixed],
        // Held from outside: what follows keeps the shell from becoming it.
        &["sh", "-c", &child, "sh"],
    ] {
        let path = folder.path().join("written");
        let all = WRITTEN << 20;
        let Some(unwritten) = left_unwritten(words, &path, WRITTEN) else {
            skip!("a kernel without cachestat(2)")
        };
        assert!(unwritten < all / 2, "{words:?}: {unwritten} of {all} unwritten");
    }
}

/// What of so many MiB is unwritten when a command in a class that gives way has made them; `None` where the kernel does not tell.
fn left_unwritten(words: &[&str], path: &Path, mebibytes: u64) -> Option<u64> {
    let class = Class::new("unlimited");
    let mut command = product::discnice(["run", "--class", class.name(), "--"]);
    command.args(words).arg(path).arg(mebibytes.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut done = [0; 5];
    let said = child.stdout.as_mut().unwrap().read_exact(&mut done);
    let unwritten = cold::unwritten(path);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success() && said.is_ok(), "{words:?}");
    unwritten
}
