//! `--only-when`: a job stands until its conditions are met, on a bus with services that a script plays, and without a bus.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use discnice_tests::bus::Bus;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, send, until, wait, with_in_environment, within};
use discnice_tests::{product, skip};
use serde_json::Value;
use tempfile::TempDir;

/// What does not stand has written meanwhile.
const LONG: Duration = Duration::from_millis(300);
const COUNTS: &str = "while :; do echo >>log; sleep 0.02; done";

/// A command that takes long on a busy machine is asked less often.
const PATIENCE: Duration = Duration::from_secs(100);

/// A job that counts while it runs.
struct Job {
    started: Group,
    folder: TempDir,
}

impl Job {
    fn start(bus: &str, options: &[&str]) -> Self {
        Self::start_script(bus, options, COUNTS)
    }

    fn start_script(bus: &str, options: &[&str], script: &str) -> Self {
        let folder = product::folder();
        let mut command = product::discnice(["run"]);
        command.args(options).args(["sh", "-c", script]).current_dir(folder.path());
        command.env("DBUS_SYSTEM_BUS_ADDRESS", bus).stdout(Stdio::null());
        command.stderr(File::create(folder.path().join("errors")).expect("a file"));
        Self { started: Group::start(&mut command), folder }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).expect("a file")
    }

    fn written(&self) -> u64 {
        fs::metadata(self.folder.path().join("log")).map_or(0, |log| log.len())
    }

    fn stands(&self) -> bool {
        let before = self.written();
        std::thread::sleep(LONG);
        self.written() == before
    }

    fn must_stand(&self, words: &str) {
        until(words, || {
            self.stands() && self.told().lines().last().is_some_and(|line| line.contains(words))
        });
    }

    fn must_go_on(&self) {
        let before = self.written();
        until("it goes on", || self.written() > before + 3);
    }
}

/// A condition that a test sets.
struct Switch(TempDir);

impl Switch {
    fn new() -> Self {
        Self(product::folder())
    }

    fn go(&self) -> PathBuf {
        self.0.path().join("go")
    }

    fn on(&self) {
        fs::write(self.go(), "").expect("a file");
    }

    fn off(&self) {
        fs::remove_file(self.go()).expect("it is there");
    }

    /// The condition; each time it is asked for leaves a line.
    fn condition(&self) -> String {
        format!("cmd:echo >>{}; test -e {}", self.asked().display(), self.go().display())
    }

    fn asked(&self) -> PathBuf {
        self.0.path().join("asked")
    }

    /// Returns when what was set has been seen: an answer is taken before the next question.
    fn until_seen(&self) {
        let times = || fs::metadata(self.asked()).map_or(0, |asked| asked.len());
        let before = times();
        within(PATIENCE, "it is asked for", || times() > before + 1);
        std::thread::sleep(Duration::from_secs(2));
    }
}

fn no_bus() -> String {
    format!("unix:path={}", PathBuf::from("/nonexistent/bus").display())
}

#[test]
fn power_comes_and_goes() {
    if !Bus::can_be() {
        skip!("no dbus-daemon or python3");
    }
    let bus = Bus::start();
    bus.say("OnBattery", "b 1");
    let job = Job::start(&bus.address(), &["--only-when", "ac,unmetered"]);
    job.must_stand("the job waits for mains power");
    assert_eq!(job.written(), 0, "it has not begun");
    bus.say("OnBattery", "b 0");
    let begun = Instant::now();
    job.must_go_on();
    assert!(begun.elapsed() < Duration::from_secs(10), "within moments: {:?}", begun.elapsed());
    bus.say("Metered", "u 1");
    job.must_stand("the job waits for an unmetered network");
    bus.say("Metered", "u 4");
    job.must_go_on();
}

#[test]
fn an_idle_machine() {
    if !Bus::can_be() {
        skip!("no dbus-daemon or python3");
    }
    let bus = Bus::start();
    let job = Job::start(&bus.address(), &["--only-when", "idle=1h"]);
    job.must_stand("the job waits for an idle machine");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let since = |ago: u64| format!("t {}", (now - Duration::from_secs(ago)).as_micros());
    bus.say("IdleSinceHint", &since(60));
    bus.say("IdleHint", "b 1");
    job.must_stand("the job waits for an idle machine");
    bus.say("IdleSinceHint", &since(3700));
    job.must_go_on();
}

#[test]
fn a_job_goes_on_if_its_parent_is_killed_while_it_stands() {
    let class = Class::new("unlimited");
    let own = ["--only-when", "cmd:false"];
    let part = ["--class", class.name(), "--only-when", "cmd:false"];
    for options in [&own[..], &part] {
        let mut job = Job::start(&no_bus(), options);
        job.must_stand("the job waits for the success of its command");
        job.started.kill().expect("it is there");
        job.must_go_on();
    }
    until("status says so", || class.show()["unmet"] == serde_json::json!([]));
}

#[test]
fn a_part_of_a_class_stands_and_says_why() {
    let (class, folder) = (Class::new("unlimited"), product::folder());
    let go = folder.path().join("go");
    let condition = format!("load<100000,cmd:test -e {}", go.display());
    let mut other = class.command(["sleep", "60"]);
    let _other = Group::start(other.stdout(Stdio::null()).stderr(Stdio::null()));
    let job = Job::start(&no_bus(), &["--class", class.name(), "--only-when", &condition]);
    job.must_stand("the job waits for the success of its command");
    let shown = class.show();
    assert_eq!(
        (&shown["paused"], &shown["waits_for"]),
        (&Value::Bool(false), &"condition".into()),
        "{shown}"
    );
    assert_eq!(shown["unmet"], serde_json::json!(["cmd"]), "{shown}");
    let explained = run(&mut product::discnice(["explain", class.name()])).succeeded().text();
    assert!(explained.contains("the success of its command: a job of it is paused"), "{explained}");
    let status = run(&mut product::discnice(["status"])).succeeded().text();
    assert!(status.contains("waits for the success of its command"), "{status}");
    fs::write(&go, "").expect("a file");
    job.must_go_on();
    until("status says so", || class.show()["unmet"] == serde_json::json!([]));
}

/// What a killed job leaves is no job any more, and has no conditions.
#[test]
fn what_a_job_leaves_that_is_killed_while_it_stands_goes_on() {
    let class = Class::new("unlimited");
    for options in [&["--class", class.name()][..], &[]] {
        let switch = Switch::new();
        switch.on();
        let condition = switch.condition();
        let options = [options, &["--only-when", &condition]].concat();
        let script = format!("echo $$ >id; sh -c '{COUNTS}' & wait");
        let mut job = Job::start_script(&no_bus(), &options, &script);
        // At first it may stand until the condition is known to be met.
        switch.until_seen();
        job.must_go_on();
        switch.off();
        job.must_stand("the job waits for the success of its command");
        // A look later its processes are known.
        std::thread::sleep(Duration::from_secs(2));
        let root = fs::read_to_string(job.folder.path().join("id")).expect("a file");
        send(root.trim().parse().expect("a number"), libc::SIGKILL);
        let ended = wait(&mut job.started, &"the job");
        assert!(!ended.success(), "{}", job.told());
        job.must_go_on();
    }
}

/// What is left when the parent and the job's first process are killed together has neither of them to wake it.
#[test]
fn what_a_job_leaves_that_is_killed_with_its_parent_while_it_stands_goes_on() {
    let (class, switch) = (Class::new("unlimited"), Switch::new());
    switch.on();
    let condition = switch.condition();
    let options = ["--class", class.name(), "--only-when", &condition];
    let script = format!("echo $$ >id; sh -c '{COUNTS}' & wait");
    let job = Job::start_script(&no_bus(), &options, &script);
    // At first it may stand until the condition is known to be met.
    switch.until_seen();
    job.must_go_on();
    switch.off();
    switch.until_seen();
    job.must_stand("the job waits for the success of its command");
    let root = fs::read_to_string(job.folder.path().join("id")).expect("a file");
    let (root, parent) = (root.trim().parse().expect("a number"), job.started.id().cast_signed());
    send(parent, libc::SIGSTOP);
    send(root, libc::SIGKILL);
    std::thread::sleep(Duration::from_secs(1));
    assert!(job.stands(), "{}", job.told());
    send(parent, libc::SIGKILL);
    job.must_go_on();
}

/// Neither the conditions nor the end of the parent undo what the user did.
#[test]
fn a_job_that_the_user_paused_stays_paused() {
    let (class, switch) = (Class::new("unlimited"), Switch::new());
    switch.on();
    let condition = switch.condition();
    let options = ["--class", class.name(), "--only-when", &condition];
    let mut job = Job::start_script(&no_bus(), &options, &format!("echo $$ >id; {COUNTS}"));
    switch.until_seen();
    job.must_go_on();
    let root = fs::read_to_string(job.folder.path().join("id")).expect("a file");
    let root = root.trim();
    run(&mut product::discnice(["pause", root])).succeeded();
    switch.off();
    switch.until_seen();
    switch.on();
    switch.until_seen();
    assert!(job.stands(), "goes on: {}", job.told());
    switch.off();
    switch.until_seen();
    job.started.kill().expect("it is there");
    std::thread::sleep(Duration::from_secs(1));
    assert!(job.stands(), "goes on: {}", job.told());
    run(&mut product::discnice(["resume", root])).succeeded();
    job.must_go_on();
}

/// With a handler, which runs only when the job goes on.
#[test]
fn a_job_that_stands_can_be_asked_to_end() {
    let script = "trap 'exit 3' TERM; while :; do echo >>log; sleep 0.05; done";
    let class = Class::new("unlimited");
    for class_options in [&[][..], &["--class", class.name()]] {
        let switch = Switch::new();
        switch.on();
        let condition = switch.condition();
        let options = [class_options, &["--only-when", &condition]].concat();
        let mut job = Job::start_script(&no_bus(), &options, script);
        until("it begins", || job.written() > 0);
        switch.off();
        job.must_stand("the job waits for the success of its command");
        send(job.started.id().cast_signed(), libc::SIGTERM);
        let ended = wait(&mut job.started, &"the job");
        assert_eq!(ended.code(), Some(3), "{}", job.told());
    }
    assert_eq!(class.show()["unmet"], serde_json::json!([]));
}

/// A signal can be received while what holds the job is replaced: then nothing is pending any more.
#[test]
fn a_job_that_was_asked_to_end_while_its_holder_was_replaced_ends() {
    let script = "trap 'echo >asked; while test ! -e end; do :; done; exit 3' TERM; while :; do echo >>log; done";
    let runtime = product::private_folder();
    let (switch, folder) = (Switch::new(), product::folder());
    switch.on();
    let mut command = product::discnice(["run", "--only-when", &switch.condition()]);
    command.args(["sh", "-c", script]).current_dir(folder.path()).stdout(Stdio::null());
    command.env("DBUS_SYSTEM_BUS_ADDRESS", no_bus()).env("XDG_RUNTIME_DIR", runtime.path());
    command.stderr(File::create(folder.path().join("errors")).expect("a file"));
    let mut job = Job { started: Group::start(&mut command), folder };
    until("it begins", || job.written() > 0);
    switch.off();
    job.must_stand("the job waits for the success of its command");
    // The worker, which is stopped while it holds, is killed by its deadline; its keeper starts no other one as long as it stands.
    let daemons = daemons(runtime.path());
    daemons.iter().for_each(|daemon| send(*daemon, libc::SIGSTOP));
    until("its holder is gone", || !job.stands());
    send(job.started.id().cast_signed(), libc::SIGTERM);
    let path = job.folder.path().to_owned();
    until("its handler runs", || path.join("asked").exists());
    daemons.iter().for_each(|daemon| send(*daemon, libc::SIGCONT));
    // By now it would be held again.
    std::thread::sleep(Duration::from_secs(3));
    fs::write(path.join("end"), "").expect("a file");
    let ended = wait(&mut job.started, &"the job");
    assert_eq!(ended.code(), Some(3), "{}", job.told());
}

/// The processes of policyd that have this runtime folder.
fn daemons(runtime: &Path) -> Vec<i32> {
    let all = with_in_environment(&format!("XDG_RUNTIME_DIR={}", runtime.display()));
    let is_daemon = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"policyd")
    };
    all.into_iter().filter(is_daemon).map(u32::cast_signed).collect()
}

/// A job that ignores SIGHUP, as below nohup(1), is not asked to end by one.
#[test]
fn a_signal_that_the_job_ignores_does_not_let_it_go_on() {
    let switch = Switch::new();
    switch.on();
    let script = "trap '' HUP; while :; do echo >>log; sleep 0.02; done";
    let job = Job::start_script(&no_bus(), &["--only-when", &switch.condition()], script);
    until("it begins", || job.written() > 0);
    switch.off();
    job.must_stand("the job waits for the success of its command");
    send(job.started.id().cast_signed(), libc::SIGHUP);
    std::thread::sleep(Duration::from_secs(2));
    assert!(job.stands(), "goes on: {}", job.told());
}

/// After the time of `--until` no condition counts.
#[test]
fn a_job_that_stands_goes_on_at_the_end() {
    let waits = ["--only-when", "cmd:false", "--until", "+6", "--then"];
    let job = Job::start(&no_bus(), &[&waits[..], &["continue"]].concat());
    until("it waits", || job.told().contains("the job waits for the success of its command"));
    until("it is over", || job.told().contains("the job goes on without limits (--until)"));
    job.must_go_on();

    let class = Class::new("unlimited");
    let options = [&["--class", class.name()], &waits[..], &["stop"]].concat();
    let mut job = Job::start(&no_bus(), &options);
    until("it waits", || job.told().contains("the job waits for the success of its command"));
    until("it is over", || job.told().contains("the job is paused (--until)"));
    until("status says so", || class.show()["unmet"] == serde_json::json!([]));
    job.started.kill().expect("it is there");
    std::thread::sleep(Duration::from_secs(1));
    assert!(job.stands(), "goes on: {}", job.told());
}

#[test]
fn without_a_bus() {
    let hour = |later: u64| {
        let date = Command::new("date").args(["-d", &format!("{later} hours"), "+%H:%M"]).output();
        String::from_utf8(date.expect("date").stdout).expect("a time").trim().to_owned()
    };
    let later = format!("{}-{}", hour(2), hour(4));
    let job = Job::start(&no_bus(), &["--only-when", &later]);
    job.must_stand("the job waits for its time of the day");
    let now = format!("{}-{}", hour(23), hour(3));
    let job = Job::start(&no_bus(), &["--only-when", &now]);
    job.must_go_on();
}

/// The kernel's own word on power, in a mount namespace in which a folder stands for that of /sys.
#[test]
fn power_by_sysfs() {
    let place = Path::new("/sys/class/power_supply");
    if !product::is_root() || !place.is_dir() {
        skip!("not the superuser, or no {}", place.display());
    }
    let supplies = product::folder();
    let battery = supplies.path().join("BAT0");
    fs::create_dir(&battery)
        .and_then(|()| fs::write(battery.join("type"), "Battery\n"))
        .expect("files");
    let job = product::folder();
    let mut command = product::discnice(["run", "--only-when", "ac", "sh", "-c", "echo >log"]);
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(std::ffi::OsStr::to_owned)
        .collect();
    let mut unshared = Command::new("unshare");
    unshared.args(["-m", "sh", "-c", "mount --bind \"$0\" /sys/class/power_supply && exec \"$@\""]);
    unshared.arg(supplies.path()).args(words).current_dir(job.path());
    for (name, value) in command.env("DBUS_SYSTEM_BUS_ADDRESS", no_bus()).get_envs() {
        if let Some(value) = value {
            unshared.env(name, value);
        }
    }
    unshared.stderr(File::create(job.path().join("errors")).expect("a file"));
    let _started = Group::start(&mut unshared);
    let told = || fs::read_to_string(job.path().join("errors")).unwrap_or_default();
    until("it waits for mains power", || told().contains("waits for mains power"));
    assert!(!job.path().join("log").exists());
    let mains = supplies.path().join("AC");
    fs::create_dir(&mains).and_then(|()| fs::write(mains.join("type"), "Mains\n")).expect("files");
    fs::write(mains.join("online"), "1\n").expect("a file");
    until("it goes on", || job.path().join("log").exists());
}
