//! `discnice pause` and `resume`, with programs that each mechanism holds, and with the death of what holds them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use discnice_tests::class::Class;
use discnice_tests::process::{Group, Outcome, only_child, run, send, wait, within};
use discnice_tests::{product, skip};
use serde_json::Value;
use tempfile::TempDir;

/// Writes a line again and again, and takes processor time between.
const BUSY: &str = "i=0; while :; do i=$((i+1)); [ $((i % 3000)) = 0 ] && echo >>\"$log\"; done";
/// Starts a child for each line.
const PARENT: &str = "while :; do echo >>\"$log\"; sleep 0.01; done";
/// What is not paused has written meanwhile.
const LONG: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(10);

/// One at a time, each with a daemon of its own: one watches all classes of this user.
fn alone() -> (Daemon, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (Daemon::start(), turn)
}

/// A command that writes to a log.
struct Writer {
    group: Group,
    log: PathBuf,
    _folder: TempDir,
}

impl Writer {
    fn start(mut command: Command) -> Self {
        let folder = product::folder();
        let log = folder.path().join("log");
        let group = Group::start_silent(command.env("log", &log));
        let writer = Self { group, log, _folder: folder };
        writer.must_go_on();
        writer
    }

    fn shell(mut command: Command, script: &str) -> Self {
        command.args(["sh", "-c", script]);
        Self::start(command)
    }

    /// Of no class.
    fn stranger(script: &str) -> Self {
        let mut command = product::as_user("sh");
        command.args(["-c", script]);
        Self::start(command)
    }

    fn id(&self) -> String {
        self.group.id().to_string()
    }

    fn written(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |meta| meta.len())
    }

    fn stands(&self) -> bool {
        let before = self.written();
        std::thread::sleep(LONG);
        self.written() == before
    }

    fn must_go_on(&self) {
        let before = self.written();
        until("it goes on", || self.written() > before);
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    within(PATIENCE, what, is_so);
}

fn discnice(words: &[&str]) -> Outcome {
    run(&mut product::discnice(words))
}

fn pause(what: &str) {
    let told = discnice(&["pause", what]).succeeded();
    assert_eq!(told.text(), format!("{what} is paused; `discnice resume {what}` lets it go on\n"));
    assert_eq!(told.complaint(), "");
}

fn resume(what: &str) {
    let told = discnice(&["resume", what]).succeeded();
    assert_eq!((told.text(), told.complaint()), (String::new(), String::new()));
}

fn refused(words: &[&str], why: &str) {
    let outcome = discnice(words);
    assert_eq!(outcome.status, Some(125), "{words:?}: {outcome:?}");
    assert!(outcome.complaint().contains(why), "{words:?}: {outcome:?}");
}

/// How many members of the class `status` shows as paused, and how many there are.
fn paused_members(class: &Class) -> (usize, usize) {
    let shown = class.show();
    let members = shown["members"].as_array().expect("an array");
    (members.iter().filter(|member| member["paused"] == true).count(), members.len())
}

#[test]
fn a_class_stands_and_goes_on() {
    let _alone = alone();
    let class = Class::new("50M");
    let busy = Writer::shell(class.run(), BUSY);
    let parent = Writer::shell(class.run(), PARENT);
    pause(class.name());
    assert!(busy.stands() && parent.stands(), "{:?}", class.show());
    assert_eq!(class.show()["paused"], true);
    let (paused, all) = paused_members(&class);
    assert!(paused == all && all >= 2, "{paused} of {all}");
    let told = discnice(&["status"]).succeeded().text();
    assert!(told.contains("(paused)") && told.contains("until `discnice resume`"), "{told}");
    // What joins it stands, too; new limits change nothing of that.
    let mut joining = class.run();
    let mut joining = joining.arg("true").process_group(0).spawn().expect("it starts");
    discnice(&["class", "set", class.name(), "--disk", "60M"]).succeeded();
    assert!(busy.stands() && parent.stands(), "{:?}", class.show());
    assert!(joining.try_wait().expect("our child").is_none(), "it joined a paused class");
    resume(class.name());
    assert!(wait(&mut joining, &"true").success());
    busy.must_go_on();
    parent.must_go_on();
    assert_eq!(class.show()["paused"], false);
    refused(&["resume", class.name()], "is not paused");
}

#[test]
fn a_static_program_stands() {
    let _alone = alone();
    let program = Path::new("/bin/busybox");
    if !program.exists() {
        skip!("no static busybox");
    }
    let class = Class::new("50M");
    let mut command = class.run();
    command.arg(program).args(["sh", "-c", BUSY]);
    let writer = Writer::start(command);
    pause(class.name());
    assert!(writer.stands(), "{:?}", class.show());
    resume(class.name());
    writer.must_go_on();
}

#[test]
fn a_member_stands_with_its_children_alone() {
    let _alone = alone();
    let class = Class::new("50M");
    let one = Writer::shell(class.run(), PARENT);
    let other = Writer::shell(class.run(), BUSY);
    pause(&one.id());
    assert!(one.stands(), "{:?}", class.show());
    other.must_go_on();
    assert_eq!(class.show()["paused"], false);
    refused(&["resume", &other.id()], "is not paused");
    // Of its class as a whole it is a part.
    pause(class.name());
    refused(&["resume", &one.id()], "is paused with its class");
    assert!(other.stands());
    resume(class.name());
    one.must_go_on();
    other.must_go_on();
}

#[test]
fn a_process_of_no_class_stands_and_is_in_none_afterwards() {
    let _alone = alone();
    let writer = Writer::stranger(PARENT);
    pause(&writer.id());
    assert!(writer.stands());
    // Paused twice, it goes on at once.
    pause(&writer.id());
    resume(&writer.id());
    writer.must_go_on();
    refused(&["resume", &writer.id()], "is not paused");
    let all: Value = serde_json::from_slice(&discnice(&["status", "--json"]).output).expect("JSON");
    let classes = all["classes"].as_array().expect("an array").iter();
    let mut members = classes.flat_map(|class| class["members"].as_array().expect("an array"));
    let still = |member: &Value| member["process"] == writer.group.id();
    assert!(!members.any(still), "{all}");
}

#[test]
fn what_is_paused_can_be_ended() {
    let _alone = alone();
    let class = Class::new("50M");
    let mut writer = Writer::shell(class.run(), BUSY);
    pause(class.name());
    send(writer.group.id().cast_signed(), libc::SIGTERM);
    let status = wait(&mut writer.group, &"a paused process");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

/// A daemon of the test's own, which is killed in the end: the keeper and its worker.
struct Daemon(Child);

impl Daemon {
    fn start() -> Self {
        let mut command = product::discnice(["policyd", "--idle", "20s"]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Self(quiet.spawn().expect("it starts"));
        until("it has a worker", || daemon.worker().is_some());
        daemon
    }

    fn worker(&self) -> Option<i32> {
        only_child(self.0.id()).map(u32::cast_signed)
    }

    /// Kills both before the keeper sees that its worker is gone.
    fn kill(&mut self) {
        let worker = self.worker();
        let keeper = self.0.id().cast_signed();
        for id in [Some(keeper), worker].into_iter().flatten() {
            send(id, libc::SIGKILL);
        }
        let _ = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_killed_holder_is_replaced_and_without_one_all_goes_on() {
    let (mut daemon, _turn) = alone();
    let class = Class::new("50M");
    let writer = Writer::shell(class.run(), PARENT);
    pause(class.name());
    assert!(writer.stands());
    let worker = daemon.worker().expect("it holds");
    send(worker, libc::SIGKILL);
    until("another worker", || daemon.worker().is_some_and(|now| now != worker));
    until("it holds again", || writer.stands());
    daemon.kill();
    writer.must_go_on();
    // It is to stand until it is resumed: the next daemon holds it.
    let _next = Daemon::start();
    until("it holds again", || writer.stands());
    resume(class.name());
    writer.must_go_on();
}

#[test]
fn all_are_paused_though_nothing_can_be_printed() {
    let _alone = alone();
    let jobs = [Class::new("50M"), Class::new("50M")];
    let _writers = [0, 1].map(|one| Writer::shell(jobs[one].run(), PARENT));
    let mut pause = product::discnice(["pause", jobs[0].name(), jobs[1].name()]);
    pause.stdout(fs::File::options().write(true).open("/dev/full").expect("a device"));
    let status = pause.status().expect("it starts");
    assert_eq!(status.code(), Some(125), "that is told");
    assert!(jobs.iter().all(|job| job.show()["paused"] == true));
    jobs.iter().for_each(|job| resume(job.name()));
}

#[test]
fn what_cannot_be_paused_is_told() {
    let _alone = alone();
    refused(&["pause", "no-such-class"], "no class no-such-class");
    refused(&["pause", "99999999"], "no process 99999999");
    refused(&["pause", &std::process::id().to_string()], "this command is in");
    let class = Class::new("50M");
    let own = format!("{} pause {}", product::program().display(), class.name());
    let refused = run(&mut class.command(["sh", "-c", &own]));
    assert!(refused.complaint().contains("would be paused with it"), "{refused:?}");
    assert_eq!(refused.status, Some(125));
}
