//! What the tests of polite jobs share: commands in a place of their own, and what `status` tells of a job.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A folder for what a test's jobs keep, removed with all of it once nothing writes there any more: the regulator of a job
/// saves its targets after the job has ended.
pub struct Scene(Option<TempDir>);

impl Scene {
    pub fn new() -> Self {
        Self(Some(tempfile::tempdir().unwrap()))
    }

    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("it is there until dropped").path()
    }

    /// Returns true if a process has the folder in its environment.
    fn is_in_use(&self) -> bool {
        let name = self.path().as_os_str().as_bytes();
        let has_it = |process: fs::DirEntry| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.windows(name.len()).any(|part| part == name)
        };
        fs::read_dir("/proc").unwrap().flatten().any(has_it)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = within(Duration::from_secs(2), || (!self.is_in_use()).then_some(()));
        self.0 = None;
    }
}

pub fn environment<'a>(command: &'a mut Command, scene: &Path) -> &'a mut Command {
    command.env("XDG_RUNTIME_DIR", scene).env("XDG_STATE_HOME", scene.join("state"))
}

pub fn polite(scene: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.args(["run", "--polite"]).args(words);
    environment(&mut command, scene);
    command
}

pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The job with this process, as `status --json` tells of it.
pub fn told(scene: &Path, process: u32) -> Option<serde_json::Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    let output = environment(command.args(["status", "--json"]), scene).output().unwrap();
    let all: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    all["jobs"].as_array().unwrap().iter().find(|job| job["process"] == process).cloned()
}

pub fn soon<T>(what: &str, get: impl FnMut() -> Option<T>) -> T {
    within(Duration::from_secs(5), get).expect(what)
}

pub fn within<T>(time: Duration, mut get: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + time;
    loop {
        let found = get();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The product's answer to these words.
pub fn said(scene: &Path, words: &[&str]) -> Output {
    environment(Command::new(env!("CARGO_BIN_EXE_discnice")).args(words), scene).output().unwrap()
}

/// Kills a process when dropped, also where a test fails.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
