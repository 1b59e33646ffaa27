//! Two sessions of one user, as of cron and a desktop: each has a daemon, the classes are the same.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn discnice(session: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.args(words).env("XDG_RUNTIME_DIR", session);
    command
}

/// A job in a class, killed when dropped.
struct Job(Child);

impl Job {
    fn start(session: &Path, class: &str) -> Self {
        let words = ["run", "--class", class, "--disk", "50M", "--", "sleep", "60"];
        let mut command = discnice(session, &words);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn members(session: &Path, class: &str) -> Vec<Value> {
    let output = discnice(session, &["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = status["classes"].as_array().unwrap().iter().find(|found| found["name"] == class);
    found.map_or_else(Vec::new, |found| found["members"].as_array().unwrap().clone())
}

fn until_there_are(count: usize, session: &Path, class: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while members(session, class).len() != count {
        assert!(Instant::now() < deadline, "{:?}", members(session, class));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_daemon_of_another_session_is_no_member() {
    let sessions = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, other] = [sessions[0].path(), sessions[1].path()];
    let class = format!("sessions-{}", std::process::id());
    let first = Job::start(one, &class);
    until_there_are(1, one, &class);
    // By now its daemon watches the class.
    std::thread::sleep(Duration::from_millis(500));
    let second = Job::start(other, &class);
    // It starts the daemon of its own session.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(members(one, &class).len(), 2, "{:?}", members(one, &class));
    drop((first, second));
    until_there_are(0, one, &class);
    let removed = discnice(one, &["class", "rm", &class]).status().unwrap();
    assert!(removed.success());
}
