//! A holder that is stopped itself (^Z, SIGSTOP) does not keep others stopped.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use serde_json::Value;

/// A holder lets go within this.
const SOON: Duration = Duration::from_millis(500);

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene).env("XDG_STATE_HOME", scene.join("state"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// One test at a time: each daemon watches all classes of this user.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process in a group of its own; all of the group is killed in the end.
struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().unwrap())
    }

    /// Reads a file past the cache, in one process.
    fn reader(scene: &Path) -> Self {
        let file = scene.join("data");
        fs::write(&file, vec![1; 32 << 20]).unwrap();
        let script = "import mmap, os, sys\n\
                      file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\n\
                      buffer = mmap.mmap(-1, 1 << 16)\n\
                      while True: os.preadv(file, [buffer], 0)";
        let mut python = Command::new("python3");
        Self::start(python.args(["-c", script]).arg(file))
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, name: &str) {
        signal(name, &[self.id()]);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let numbers = processes.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(name).args(numbers).stderr(Stdio::null()).status();
}

fn field(id: u32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(number).map(str::to_owned)
}

fn is_stopped(id: u32) -> bool {
    field(id, 0).is_some_and(|state| matches!(&*state, "t" | "T"))
}

/// The process and all its descendants.
fn family(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let everybody = || fs::read_dir("/proc").unwrap().flatten();
    let ids = everybody().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        ids.filter_map(|id| Some((id, field(id, 1)?.parse().ok()?))).collect();
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        all.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    all
}

fn wait_until(otherwise: &str, time: Duration, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + time;
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the kernel says that a process has read.
fn read(id: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap().parse().unwrap()
}

/// How many ticks a process has run outside the kernel.
fn processor_time(id: u32) -> u64 {
    field(id, 11).unwrap().parse().unwrap()
}

fn status(scene: &Path) -> Value {
    let output = discnice(scene).args(["status", "--json"]).stdout(Stdio::piped()).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

/// Why a process is not held, as `status` says.
fn escape(scene: &Path, id: u32) -> Option<String> {
    let status = status(scene);
    let classes = status["classes"].as_array().unwrap().iter();
    let mut members = classes.flat_map(|class| class["members"].as_array().unwrap());
    let member = members.find(|member| member["process"] == id)?;
    member["escape"].as_str().map(str::to_owned)
}

/// Checks that a process is released soon after its holder was stopped and stays so. Until then it may run for a
/// moment and stop: the holder can have asked for that before it was stopped, and a call that waits for the disk ends first.
fn runs_on(job: &Group, progress: impl Fn() -> u64) {
    std::thread::sleep(SOON);
    let (before, deadline) = (progress(), Instant::now() + Duration::from_millis(100));
    wait_until("does not go on", Duration::from_secs(10), || {
        assert!(!is_stopped(job.id()), "kept stopped by a stopped holder");
        Instant::now() > deadline && progress() > before
    });
}

/// Stops a holder at all phases of holding, and continues it: what it held goes on, and is held again.
fn holder_stopped(scene: &Path, holder: &Group, job: &Group) {
    let held = || is_stopped(job.id());
    for round in 0..5 {
        wait_until("never held", Duration::from_secs(10), held);
        std::thread::sleep(Duration::from_millis(7 * round));
        let all: Vec<u32> = family(holder.id());
        signal("-STOP", &all);
        runs_on(job, || read(job.id()));
        let why = escape(scene, job.id()).unwrap_or_default();
        assert!(why.contains("is stopped") && why.contains(&holder.id().to_string()), "{why:?}");
        signal("-CONT", &all);
    }
    wait_until("not held again", Duration::from_secs(5), held);
}

#[test]
fn a_stopped_attach_lets_go_and_holds_again_when_continued() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Group::reader(scene.path());
    let words = ["attach", "--disk", "1M", &job.id().to_string()];
    let attach = Group::start(discnice(scene.path()).args(words));
    holder_stopped(scene.path(), &attach, &job);
}

#[test]
fn a_stopped_daemon_lets_go_and_holds_again_when_continued() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Group::reader(scene.path());
    let daemon = Group::start(discnice(scene.path()).args(["policyd", "--idle", "20"]));
    std::thread::sleep(Duration::from_millis(300));
    let words = ["attach", "--background", "--disk", "1M", &job.id().to_string()];
    assert!(discnice(scene.path()).args(words).status().unwrap().success());
    holder_stopped(scene.path(), &daemon, &job);
}

/// ^Z stops all of the job that a terminal shows, and what it shows is `attach`.
#[test]
fn the_limit_holds_while_attach_is_suspended_by_its_terminal() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Group::reader(scene.path());
    let words = ["attach", "--disk", "2M", &job.id().to_string()];
    let attach = Group::start(discnice(scene.path()).args(words));
    wait_until("never held", Duration::from_secs(10), || is_stopped(job.id()));
    std::thread::sleep(Duration::from_millis(1000));
    attach.signal("-TSTP");
    wait_until("not stopped", SOON, || is_stopped(attach.id()));
    std::thread::sleep(Duration::from_millis(500));
    let before = read(job.id());
    std::thread::sleep(Duration::from_secs(3));
    let part = (read(job.id()) - before) as f64 / (3.0 * f64::from(2 << 20));
    assert!((0.6..1.4).contains(&part), "{part} of the limit");
}

/// Two jobs that are regulated by their progress take turns, so each is stopped several times a second.
#[test]
fn a_stopped_polite_regulator_lets_go() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let jobs = [0, 1].map(|_| {
        let mut shell = Command::new("sh");
        Group::start(shell.args(["-c", "while :; do :; done"]))
    });
    let regulators = jobs.each_ref().map(|job| {
        let words = ["attach", "--polite", "--no-probation", &job.id().to_string()];
        Group::start(discnice(scene.path()).args(words))
    });
    let (job, regulator) = (&jobs[0], &regulators[0]);
    for _ in 0..5 {
        wait_until("never stopped", Duration::from_secs(20), || is_stopped(job.id()));
        let all = family(regulator.id());
        signal("-STOP", &all);
        runs_on(job, || processor_time(job.id()));
        signal("-CONT", &all);
    }
    wait_until("regulated no more", Duration::from_secs(20), || is_stopped(job.id()));
}

/// Either of the two processes that answer calls below a filter.
#[test]
fn a_stopped_seccomp_supervisor_is_replaced() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let count = scene.path().join("count");
    let script = format!("while :; do echo x >> {}; done", count.display());
    let pair = || -> Vec<u32> {
        let ids = fs::read_dir("/proc").unwrap().flatten();
        ids.filter_map(|entry| {
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            (name.trim() == "discnice-notify").then_some(id)
        })
        .collect()
    };
    let others = pair();
    let words = ["run", "--disk", "100M", "--mechanism", "seccomp", "--", "sh", "-c", &script];
    let _job = Group::start(discnice(scene.path()).args(words));
    let length = || fs::metadata(&count).map_or(0, |found| found.len());
    let goes_on = |otherwise: &str| {
        let before = length();
        wait_until(otherwise, Duration::from_secs(1), || length() > before + 100);
    };
    wait_until("it does not begin", Duration::from_secs(5), || length() > 0);
    let ours = || pair().into_iter().filter(|id| !others.contains(id)).collect::<Vec<u32>>();
    if ours().is_empty() {
        skip!("no seccomp user notification");
    }
    for round in 0..4 {
        let pair = ours();
        let stopped = pair[round % pair.len()];
        signal("-STOP", &[stopped]);
        goes_on("calls wait for a stopped supervisor");
        signal("-CONT", &[stopped]);
        std::thread::sleep(Duration::from_millis(300));
    }
}
