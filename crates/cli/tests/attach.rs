//! `discnice attach --polite` with real programs, and with the deaths of all that are involved.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene).env("XDG_STATE_HOME", scene.join("state"));
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn shell(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap()
}

fn attach(scene: &Path, arguments: &[&str], pid: u32) -> Child {
    let mut command = discnice(scene);
    command.args(["attach", "--polite"]).args(arguments).arg(pid.to_string()).spawn().unwrap()
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// By a signal, or by a tracer.
fn is_stopped(pid: u32) -> bool {
    matches!(state(pid), Some('T' | 't'))
}

/// Waits until the process is not stopped, for two seconds at most.
fn runs_soon(pid: u32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_stopped(pid) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn error_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("discnice: "), "{text}");
    text
}

//= ms-manners/7.2-suspend
/// Two regulated jobs take turns, so each is stopped and continued several times a second: the
/// regulator is then killed at all phases of that. 15 kills by default; `DISCNICE_KILLS=200`.
#[test]
fn a_killed_regulator_leaves_nothing_stopped() {
    let kills: u64 =
        std::env::var("DISCNICE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let scene = tempfile::tempdir().unwrap();
    let jobs = [shell("while :; do :; done"), shell("while :; do :; done")];
    let mut stops = 0;
    let mut other = attach(scene.path(), &[], jobs[0].id());
    let mut random = 0x9e37_79b9u64;
    // On a machine in use it takes a while until the test sees the job stopped.
    for round in 0..10 * kills {
        if round >= kills && stops > 0 {
            break;
        }
        let mut victim = attach(scene.path(), &[], jobs[1].id());
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let kill_at = Instant::now() + Duration::from_millis(300 + (random >> 33) % 600);
        while Instant::now() < kill_at {
            stops += u64::from(is_stopped(jobs[1].id()));
            std::thread::sleep(Duration::from_millis(5));
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(runs_soon(jobs[1].id()), "left stopped in round {round}");
    }
    assert!(stops > 0, "the test never saw a stopped job, so it shows nothing");
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(runs_soon(jobs[0].id()));
    jobs.into_iter().for_each(end);
    let targets = scene.path().join("state/discnice/targets");
    assert!(discnice_progress::testpoint::store::set_aside_files(&targets).is_empty());
}

//= ms-manners/7.2-unmodified
//= ms-manners/11-account
#[test]
fn ends_with_the_job_and_saves_its_targets() {
    let scene = tempfile::tempdir().unwrap();
    let log = scene.path().join("log");
    fs::write(&log, "").unwrap();
    let mut job =
        shell(&format!("for i in $(seq 120); do echo $i >> {}; sleep 0.02; done", log.display()));
    let metric = format!("lines:{}", log.display());
    let regulator = attach(scene.path(), &["--json", "--metric", &metric], job.id());
    job.wait().unwrap();
    let output = regulator.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["lasted_s"].as_f64().unwrap() > 1.0, "{summary}");
    assert_eq!(summary["blind_looks"], 0, "{summary}");
    assert_eq!(fs::read_dir(scene.path().join("state/discnice/targets")).unwrap().count(), 1);
}

#[test]
fn a_metric_that_vanishes_leaves_the_job_running() {
    let scene = tempfile::tempdir().unwrap();
    let log = scene.path().join("log");
    fs::write(&log, "").unwrap();
    let mut job = shell(&format!("sleep 2; rm {}; sleep 3", log.display()));
    let metric = format!("match:{}:(\\d+)", log.display());
    let regulator = attach(scene.path(), &["--metric", &metric], job.id());
    let start = Instant::now();
    job.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(8));
    let output = regulator.wait_with_output().unwrap();
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.matches("runs unregulated").count(), 1, "{told}");
}

#[test]
fn what_cannot_be_regulated_is_refused() {
    let scene = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        error_of(&discnice(scene.path()).arg("attach").args(arguments).output().unwrap())
    };
    assert!(run(&["--polite", "0"]).contains("not a PID"));
    assert!(run(&["--polite", "--", "-4"]).contains("not a PID"));
    assert!(run(&["--polite", "999999999"]).contains("no process"));
    assert!(run(&["--polite", &std::process::id().to_string()]).contains("stop itself"));
    let error = discnice(scene.path())
        .args(["attach", "--polite", "--metric", "speed", "1"])
        .output()
        .unwrap();
    assert_eq!(error.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&error.stderr).contains("position:PATH"));
}
