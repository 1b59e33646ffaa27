//! `discnice attach --disk` and the daemon, with real programs and with the death of each.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use serde_json::Value;

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn run(scene: &Path, arguments: &[&str]) -> Output {
    discnice(scene).args(arguments).output().unwrap()
}

fn succeed(scene: &Path, arguments: &[&str]) -> String {
    let output = run(scene, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One line, status 125.
fn refuse(scene: &Path, arguments: &[&str]) -> String {
    let output = run(scene, arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{arguments:?}: {output:?}");
    assert!(text.starts_with("discnice: ") && text.lines().count() == 1, "{arguments:?}: {text}");
    text
}

/// A shell in a process group of its own.
struct Job(Child);

impl Job {
    fn shell(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().unwrap())
    }

    /// Reads a file past the cache, over and over, by one short-lived child after the other.
    fn reader(folder: &Path) -> Self {
        let file = folder.join("data");
        fs::write(&file, vec![1; 32 << 20]).unwrap();
        let file = file.display();
        Self::shell(&format!(
            "while :; do dd if={file} of=/dev/null bs=64k iflag=direct status=none; done"
        ))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// One test at a time: a daemon that another one starts watches all classes of this user, and holds
/// at once what a killed one has left.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A daemon that a test may kill; `discnice` starts one otherwise.
struct Daemon(Child);

impl Daemon {
    fn start(scene: &Path) -> Self {
        Self(discnice(scene).args(["policyd", "--idle", "5"]).spawn().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that the attached process's class has been charged.
fn charged(scene: &Path, job: &Job) -> u64 {
    class_of(scene, job).map_or(0, |class| class["read"].as_u64().unwrap())
}

fn class_of(scene: &Path, job: &Job) -> Option<Value> {
    let status: Value = serde_json::from_str(&succeed(scene, &["status", "--json"])).unwrap();
    let name = format!("@attach-{}", job.0.id());
    status["classes"].as_array().unwrap().iter().find(|class| class["name"] == name).cloned()
}

/// Bytes a second that the job pays for, over at least this time; none if it is not let run for as long as `patience`.
///
/// It runs once it has paid for all that it was charged, so that the time counts from one charge to another. Between two
/// other moments a piece that is still owed, as large as the job made it before it stood, would count as well.
fn rate(scene: &Path, job: &Job, time: Duration, patience: Duration) -> Option<f64> {
    let (first, begun) = next_charge(scene, job, patience)?;
    std::thread::sleep(time);
    let (last, ended) = next_charge(scene, job, patience)?;
    Some((last - first) as f64 / (ended - begun).as_secs_f64())
}

/// Waits until the job is charged, and returns what it had been charged before.
fn next_charge(scene: &Path, job: &Job, patience: Duration) -> Option<(u64, Instant)> {
    let (paid, begun) = (charged(scene, job), Instant::now());
    while charged(scene, job) == paid {
        if begun.elapsed() > patience {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some((paid, Instant::now()))
}

fn descendants(job: &Job) -> Vec<u32> {
    let group = i64::from(job.0.id());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let field = stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse::<i64>().ok()?;
            (field == group).then_some(id)
        })
        .collect()
}

fn is_held(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ")?.1.chars().next())
        .is_some_and(|state| matches!(state, 't' | 'T'))
}

/// Whether no process of the job stands still, within a second.
fn all_run(job: &Job) -> bool {
    let deadline = Instant::now() + Duration::from_secs(1);
    while descendants(job).into_iter().any(is_held) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

//= rate-windows/7-binaries
#[test]
fn a_running_job_is_limited_and_let_go() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Job::reader(scene.path());
    let _daemon = Daemon::start(scene.path());
    std::thread::sleep(Duration::from_millis(300));
    succeed(scene.path(), &["attach", "--background", "--disk", "4M", &job.id()]);
    std::thread::sleep(Duration::from_millis(1000));
    // The first charge may come late: a child that was born before its parent stood still has read its file at full
    // speed, and that is 8 s of the limit.
    let paid = rate(scene.path(), &job, Duration::from_secs(4), Duration::from_secs(20));
    let limited = paid.expect("it is let run") / f64::from(4 << 20);
    assert!((0.7..1.2).contains(&limited), "{limited} of the limit");
    let class = class_of(scene.path(), &job).unwrap();
    let members = class["members"].as_array().unwrap();
    assert!(members.iter().any(|member| member["mechanism"] == "freeze"), "{class}");
    let (moved, charged) = (&class["by_mechanism"]["freeze"], &class["read"]);
    assert!(moved.as_u64() > Some(1 << 20) && moved == charged, "{class}");
    let again = refuse(scene.path(), &["attach", "--disk", "1M", &job.id()]);
    assert!(again.contains("limited already"), "{again}");
    succeed(scene.path(), &["detach", &job.id()]);
    assert!(all_run(&job), "held after detach");
    assert!(refuse(scene.path(), &["detach", &job.id()]).contains("not attached"));
}

#[test]
fn what_a_process_moved_before_it_was_attached_is_not_shown_as_the_jobs() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = scene.path().join("data");
    // The shell writes by itself.
    let job = Job::shell(&format!("printf %8388608s >{}; exec sleep 100", file.display()));
    let comm = format!("/proc/{}/comm", job.0.id());
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs::read_to_string(&comm).unwrap() != "sleep\n" && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _daemon = Daemon::start(scene.path());
    succeed(scene.path(), &["attach", "--background", "--disk", "4M", &job.id()]);
    let class = class_of(scene.path(), &job).unwrap();
    let member = &class["members"][0];
    assert_eq!(member["name"], "sleep", "{class}");
    for amount in ["written", "seen"] {
        assert!(member[amount].as_u64() < Some(1 << 20), "{amount}: {class}");
    }
    succeed(scene.path(), &["detach", &job.id()]);
}

/// The daemon is killed at all phases of holding. 10 kills by default; `DISCNICE_KILLS=200`.
#[test]
fn a_killed_daemon_leaves_no_process_held_and_the_next_finds_all() {
    let _alone = alone();
    let kills = std::env::var("DISCNICE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Job::reader(scene.path());
    drop(Daemon::start(scene.path()));
    let mut daemon = Daemon::start(scene.path());
    std::thread::sleep(Duration::from_millis(300));
    succeed(scene.path(), &["attach", "--background", "--disk", "2M", &job.id()]);
    let (mut seen_held, mut random) = (0, 0x9e37_79b9_u64);
    for round in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let kill_at = Instant::now() + Duration::from_millis(20 + (random >> 33) % 300);
        while Instant::now() < kill_at {
            seen_held += u32::from(descendants(&job).into_iter().any(is_held));
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(daemon);
        assert!(all_run(&job), "left held in round {round}");
        daemon = Daemon::start(scene.path());
    }
    assert!(seen_held > 0, "no process was ever seen held, so that this shows nothing");
    // In force again: a reader is held, until what was read between two daemons is paid for too.
    let deadline = Instant::now() + Duration::from_secs(1);
    while !descendants(&job).into_iter().any(is_held) {
        assert!(Instant::now() < deadline, "no process is held a second after the last start");
        std::thread::sleep(Duration::from_millis(1));
    }
    let (time, limit) = (Duration::from_secs(3), f64::from(2 << 20));
    let paid = rate(scene.path(), &job, time, time);
    assert!(paid.is_none_or(|rate| rate < 1.3 * limit), "{paid:?} B/s after {kills} kills");
}

/// Signals do what they do without us, and the parent sees no stop but the user's.
#[test]
fn signals_reach_a_held_program() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = scene.path().join("data");
    fs::write(&file, vec![1; 64 << 20]).unwrap();
    // In pieces so small that it takes a second by itself: to start and to attach takes its time, too.
    let mut child = Command::new("dd")
        .args([&format!("if={}", file.display()), "of=/dev/null", "bs=4k", "iflag=direct"])
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let mut attach = discnice(scene.path()).args(["attach", "--disk", "1M", &id]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while !is_held(child.id()) {
        assert!(Instant::now() < deadline, "never held");
        std::thread::sleep(Duration::from_millis(1));
    }
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    };
    signal("-STOP");
    let deadline = Instant::now() + Duration::from_secs(5);
    while state() != Some('T') {
        assert!(Instant::now() < deadline, "{:?}: not stopped by the user", state());
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(state(), Some('T'), "and still is");
    signal("-CONT");
    assert_ne!(state(), Some('T'), "continued");
    signal("-TERM");
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    assert!(attach.wait().unwrap().success(), "it ends with the program");
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let attach = |pid: &str| refuse(scene.path(), &["attach", "--disk", "1M", "--", pid]);
    assert!(attach("0").contains("not a PID"));
    assert!(attach("-4").contains("not a PID"));
    assert!(attach("999999999").contains("no process"));
    assert!(attach("1").contains("process 1"));
    assert!(attach(&std::process::id().to_string()).contains("hold itself"));
    let mut dead = Command::new("true").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(attach(&dead.id().to_string()).contains("no process"), "a zombie");
    dead.wait().unwrap();
    let kernel = fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if kernel.trim() == "kthreadd" {
        let why = attach("2");
        assert!(why.contains("part of the kernel") || why.contains("another user"), "{why}");
    }
    let job = Job::shell("sleep 100");
    let usage = |arguments: &[&str]| refuse(scene.path(), arguments);
    assert!(usage(&["attach", &job.id()]).contains("--disk"));
    assert!(usage(&["attach", "--meta-ops", "9", &job.id()]).contains("--meta-ops does not hold"));
    assert!(usage(&["attach", "--polite", "--disk", "1M", &job.id()]).contains("--polite"));
    assert!(class_of(scene.path(), &job).is_none(), "nothing was changed");
}

#[test]
fn a_thread_is_no_process() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let link = fs::read_link("/proc/thread-self").unwrap();
        tell.send(link.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
        std::thread::sleep(Duration::from_millis(1000));
    });
    let id = told.recv().unwrap();
    assert!(refuse(scene.path(), &["attach", "--disk", "1M", &id]).contains("is a thread"));
    thread.join().unwrap();
}

#[test]
fn a_debugged_process_is_left_alone() {
    let _alone = alone();
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let job = Job::shell("sleep 100");
    let strace = Command::new("strace")
        .args(["-p", &job.id()])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let Ok(strace) = strace else {
        skip!("no strace");
    };
    let strace = Daemon(strace);
    std::thread::sleep(Duration::from_millis(300));
    let why = refuse(scene.path(), &["attach", "--disk", "1M", &job.id()]);
    assert!(why.contains("being traced"), "{why}");
    drop(strace);
}
