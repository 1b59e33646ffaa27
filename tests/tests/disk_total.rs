//! `--disk-total`: a class that has moved its bytes is held by each mechanism, says so, and goes on when it gets more.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use discnice_tests::bus::Bus;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, send, until, wait};
use discnice_tests::{cold, product, skip};
use serde_json::Value;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// What is not held has moved more meanwhile.
const LONG: Duration = Duration::from_millis(700);

/// A job in a class of its own.
struct Job {
    group: Group,
    class: Class,
    folder: TempDir,
}

impl Job {
    /// `options` are those of `run` beside the class's name.
    fn start(options: &[&str], script: &str) -> Self {
        Self::start_on("unix:path=/nonexistent", options, script)
    }

    /// On a desktop with a bus at this address.
    fn start_on(bus: &str, options: &[&str], script: &str) -> Self {
        let (class, folder) = (Class::new("unlimited"), product::folder());
        let mut command = product::discnice(["run", "--class", class.name()]);
        command.args(options).args(["--", "sh", "-c", script]).current_dir(folder.path());
        command.env("DBUS_SESSION_BUS_ADDRESS", bus);
        let errors = File::create(folder.path().join("errors")).expect("a file");
        let group = Group::start(command.stdout(Stdio::null()).stderr(errors));
        Self { group, class, folder }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).expect("a file")
    }

    fn show(&self) -> Value {
        let shown = run(&mut product::discnice(["class", "show", self.class.name(), "--json"]));
        serde_json::from_slice::<Value>(&shown.output).map_or(Value::Null, |all| all[0].clone())
    }

    fn moved(&self) -> u64 {
        let (read, written) = self.class.charged();
        read + written
    }

    fn until_held(&self) {
        until("it is held", || {
            self.show()["waits_for"] == "disk_total" && self.told().contains("has used up")
        });
        let before = self.moved();
        std::thread::sleep(LONG);
        assert_eq!(self.moved(), before, "it is held");
    }

    fn set(&self, total: &str) {
        let set = ["class", "set", self.class.name(), "--disk-total", total];
        run(&mut product::discnice(set)).succeeded();
    }
}

/// Writes 64 MiB in blocks of 64 KiB.
const WRITES: &str = "dd if=/dev/zero of=made bs=64k count=1024 2>/dev/null";

/// `most`: what may pass beyond the total of 8 MiB before the class is held.
fn is_held_and_goes_on(mechanism: &str, most: u64) {
    let options = ["--disk-total", "8M", "--disk", "64M", "--summary", "--mechanism", mechanism];
    let mut job = Job::start(&options, WRITES);
    job.until_held();
    let moved = job.moved();
    assert!((8 * MIB..=8 * MIB + most).contains(&moved), "{mechanism}: {moved}");
    assert_eq!(job.told().matches("has used up its disk total of 8 MiB").count(), 1);
    job.set("+8M");
    until("it goes on", || job.moved() >= 16 * MIB);
    job.until_held();
    assert_eq!(job.told().matches("has used up its disk total of 16 MiB").count(), 1);
    job.set("unlimited");
    assert!(wait(&mut job.group, &"the job").success(), "{mechanism}: {}", job.told());
    let made = fs::metadata(job.folder.path().join("made")).expect("it was made");
    assert_eq!(made.len(), 64 * MIB);
    let told = job.told();
    assert!(told.contains("discnice: waited") && told.contains("disk total"), "{told}");
}

#[test]
fn the_library_holds() {
    is_held_and_goes_on("preload", 4 * MIB);
}

#[test]
fn a_filter_holds() {
    is_held_and_goes_on("seccomp", 4 * MIB);
}

#[test]
fn the_watcher_holds_from_outside() {
    is_held_and_goes_on("freeze", 40 * MIB);
}

#[test]
fn a_wait_is_counted_while_it_lasts() {
    let job = Job::start(&["--disk-total", "4M", "--mechanism", "preload"], WRITES);
    job.until_held();
    let waited = || job.show()["waited_seconds"].as_f64().expect("a number");
    let before = waited();
    std::thread::sleep(3 * LONG);
    let more = waited() - before;
    assert!((1.0..5.0).contains(&more), "{more} s of {before} s");
}

#[test]
fn without_a_rate_it_holds_as_soon() {
    let job = Job::start(&["--disk-total", "8M", "--disk", "unlimited"], WRITES);
    job.until_held();
    let moved = job.moved();
    assert!((8 * MIB..=16 * MIB).contains(&moved), "{moved}");
    let folder = product::folder();
    let made = folder.path().join("made");
    cold::make(&made, 64 << 20).expect("a file");
    let reading =
        format!("exec dd if={} of=/dev/null bs=1M iflag=direct 2>/dev/null", made.display());
    let job = Job::start(&["--disk-total", "16M", "--disk", "unlimited"], &reading);
    job.until_held();
    let moved = job.moved();
    assert!((16 * MIB..=24 * MIB).contains(&moved), "{moved}");
}

#[test]
fn it_says_why() {
    let job = Job::start(&["--disk-total", "4M"], WRITES);
    job.until_held();
    let name = job.class.name();
    let shown = job.show();
    assert_eq!(shown["disk_total"], 4 * MIB, "{shown}");
    assert!(shown["disk_total_used"].as_u64().is_some_and(|used| used >= 4 * MIB), "{shown}");
    let status = run(&mut product::discnice(["status"])).succeeded().text();
    assert!(status.contains("of 4 MiB") && status.contains("its disk total"), "{status}");
    let explained = run(&mut product::discnice(["explain", name])).succeeded().text();
    assert!(explained.contains("disk: 4 MiB in all"), "{explained}");
    assert!(explained.contains("--disk-total +SIZE"), "{explained}");
    let metrics = run(&mut product::discnice(["metrics"])).succeeded().text();
    let line = format!("discnice_class_disk_total_bytes{{class=\"{name}\"}} {}", 4 * MIB);
    assert!(metrics.contains(&line), "{metrics}");
}

#[test]
fn what_is_cached_or_deleted_costs_nothing() {
    let script = "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=made bs=64k count=64 2>/dev/null; rm made; done; \
                  dd if=/dev/zero of=kept bs=64k count=16 2>/dev/null; \
                  for i in 1 2 3 4 5 6 7 8 9; do cat kept; done";
    let mut job = Job::start(&["--disk-total", "8M", "--disk", "unlimited"], script);
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert_eq!(job.told(), "");
}

#[test]
fn what_is_held_can_be_ended() {
    let mut job = Job::start(&["--disk-total", "4M"], &format!("exec {WRITES}"));
    job.until_held();
    send(job.group.id().cast_signed(), libc::SIGTERM);
    let ended = wait(&mut job.group, &"the job");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGTERM));
}

#[test]
fn the_next_job_of_a_class_has_its_own() {
    let class = Class::new("unlimited");
    let folder = product::folder();
    let job = || {
        let mut job = product::discnice(["run", "--class", class.name(), "--disk-total", "8M"]);
        job.args(["dd", "if=/dev/zero", "of=made", "bs=64k", "count=100", "conv=fsync"]);
        run(job.current_dir(folder.path())).succeeded();
    };
    job();
    job();
    let used = class.show()["disk_total_used"].as_u64().expect("a number");
    assert!(used < 8 * MIB, "{used}");
}

const ASKS: [&str; 3] = ["--disk-total", "4M", "--ask"];

#[test]
fn the_desktop_is_asked() {
    if !Bus::can_be() {
        skip!("no dbus-daemon, or no Python");
    }
    // As often as it is used up.
    let bus = Bus::start();
    bus.say("answer", "more");
    let mut job = Job::start_on(
        &bus.address(),
        &ASKS,
        "dd if=/dev/zero of=made bs=64k count=160 2>/dev/null",
    );
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    let (asked, told) = (bus.asked(), job.told());
    assert_eq!(asked.lines().count(), 2, "{asked}");
    for part in [
        job.class.name(),
        "has used up its disk total",
        "'more', '4 MiB more'",
        "'end', 'End the job'",
    ] {
        assert!(asked.contains(part), "{part} is missing in {asked}");
    }
    assert_eq!(told.matches("may move more, as answered on the desktop").count(), 2, "{told}");

    bus.say("answer", "unbounded");
    let mut job = Job::start_on(&bus.address(), &ASKS, WRITES);
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert_eq!(job.told().matches("has no disk total any more").count(), 1, "{}", job.told());

    bus.say("answer", "end");
    let mut job = Job::start_on(&bus.address(), &ASKS, &format!("exec {WRITES}"));
    let ended = wait(&mut job.group, &"the job");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&ended),
        Some(libc::SIGTERM),
        "{}",
        job.told()
    );
}

#[test]
fn without_an_answer_it_is_held_on() {
    let job = Job::start(&ASKS, WRITES);
    job.until_held();
    until("it is told", || job.told().contains("no desktop to ask on (--ask): "));
    if !Bus::can_be() {
        skip!("no dbus-daemon, or no Python");
    }
    let bus = Bus::start();
    let job = Job::start_on(&bus.address(), &ASKS, WRITES);
    job.until_held();
    until("it is asked", || bus.asked().lines().count() == 1);
    // It goes on when it gets more in another way, and is asked about anew.
    job.set("+4M");
    until("it is asked again", || bus.asked().lines().count() == 2);
    let refused = run(&mut product::discnice(["run", "--ask", "true"]));
    assert_eq!(
        (refused.status, refused.complaint().lines().count()),
        (Some(125), 1),
        "{refused:?}"
    );
}

/// As one is that the bus starts once something is to be shown.
#[test]
fn a_desktop_that_is_slow_to_show_is_heard() {
    if !Bus::can_be() {
        skip!("no dbus-daemon, or no Python");
    }
    let bus = Bus::start();
    bus.say("late", "1.5");
    bus.say("answer", "unbounded");
    let mut job = Job::start_on(&bus.address(), &ASKS, WRITES);
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert_eq!((bus.asked().lines().count(), job.told().matches("no desktop").count()), (1, 0));
}

#[test]
fn a_desktop_that_comes_later_is_asked() {
    if !Bus::can_be() {
        skip!("no dbus-daemon, or no Python");
    }
    let folder = product::folder();
    let address = format!("unix:path={}/bus", folder.path().display());
    let mut job = Job::start_on(&address, &ASKS, WRITES);
    until("it is told", || job.told().contains("no desktop to ask on (--ask): "));
    let bus = Bus::start();
    bus.say("answer", "unbounded");
    symlink(bus.socket(), folder.path().join("bus")).expect("a link");
    assert!(wait(&mut job.group, &"the job").success(), "{}", job.told());
    assert_eq!((bus.asked().lines().count(), job.told().matches("no desktop").count()), (1, 1));
}

#[test]
fn what_is_no_total_is_refused() {
    for (given, why) in [
        ("5", "5 what? 5G is 5 GiB"),
        ("0", "must be at least 1"),
        ("-5G", "must be at least 1"),
        ("+", "empty"),
        ("5Q", "unknown unit"),
        ("lots", "not a number"),
    ] {
        let refused = run(&mut product::discnice(["run", "--disk-total", given, "true"]));
        let complaint = refused.complaint();
        assert_eq!((refused.status, complaint.lines().count()), (Some(125), 1), "{complaint}");
        assert!(complaint.contains(why), "{complaint}");
    }
}
