//! What another program traces is held all the same, if that program is of the same class, or counted as not held.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use serde_json::Value;

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Option<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().ok().map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// Reads a file past the cache, without end.
const READER: &str = "import mmap, os, sys\n\
                      file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\n\
                      buffer = mmap.mmap(-1, 1 << 16)\n\
                      while True: os.preadv(file, [buffer], 0)";

const PATIENCE: Duration = Duration::from_secs(30);

/// A child of a process, when it has one that reads.
fn reading_child(parent: u32) -> u32 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.unwrap_or_default();
        let mut children = children.split_whitespace().filter_map(|child| child.parse().ok());
        if let Some(child) = children.find(|child| read(*child) > 0) {
            return child;
        }
        assert!(Instant::now() < deadline, "nothing is read");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read(id: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    let bytes = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// What the class holds that lists a process, by mechanism, and what `status` says of that process.
fn shown(scene: &Path, process: u32) -> (Value, Value) {
    listed(scene, process).unwrap_or_else(|status| panic!("no class lists {process}: {status:#}"))
}

/// Waits until a class lists a process, and has had a second to hold it.
fn wait_until_held(scene: &Path, process: u32) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(status) = listed(scene, process) {
        assert!(Instant::now() < deadline, "no class lists {process}: {status:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
}

/// As [`shown`], or all of the status if no class lists that process.
fn listed(scene: &Path, process: u32) -> Result<(Value, Value), Value> {
    let output = discnice(scene).args(["status", "--json"]).stdout(Stdio::piped()).output();
    let status: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    for class in status["classes"].as_array().unwrap() {
        let mut members = class["members"].as_array().unwrap().iter();
        if let Some(member) = members.find(|one| one["process"] == process) {
            return Ok((class["by_mechanism"].clone(), member.clone()));
        }
    }
    Err(status)
}

/// What a program below strace(1) reads in three seconds, in parts of its limit, once its class lists it.
#[test]
fn a_program_below_strace_is_held_with_strace() {
    const LIMIT: u64 = 16 << 20;
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = scene.path().join("data");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let mut strace = Command::new("strace");
    let strace =
        strace.args(["-f", "-o", "/dev/null", "-e", "trace=none", "python3", "-c", READER]);
    let Some(strace) = Group::start(strace.arg(file)) else {
        skip!("no strace");
    };
    let child = reading_child(strace.0.id());
    let words = ["attach", "--disk", "16M", &strace.0.id().to_string()];
    let _attach = Group::start(discnice(scene.path()).args(words)).unwrap();
    wait_until_held(scene.path(), child);
    let (before, begun) = (read(child), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let part = (read(child) - before) as f64 / (begun.elapsed().as_secs_f64() * LIMIT as f64);
    assert!(part < 1.5, "{part} of the limit: {:#?}", shown(scene.path(), child));
}

/// A debugger that is of no class is not held, and what it debugs goes on, counted.
#[test]
fn a_program_below_a_foreign_tracer_is_counted_and_said_to_escape() {
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = scene.path().join("data");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let mut python = Command::new("python3");
    let job = Group::start(python.args(["-c", READER]).arg(file)).unwrap();
    let name = format!("traced-{}", job.0.id());
    let words = ["attach", "--class", &name, "--disk", "400M", &job.0.id().to_string()];
    let _attach = Group::start(discnice(scene.path()).args(words)).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let id = job.0.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(10);
    let _strace = loop {
        // It fails while the process is held.
        let mut strace = Command::new("strace");
        let strace = strace.args(["-o", "/dev/null", "-e", "trace=none", "-p", &id]);
        let Some(mut strace) = Group::start(strace) else {
            skip!("no strace");
        };
        std::thread::sleep(Duration::from_millis(300));
        if strace.0.try_wait().unwrap().is_none() {
            break strace;
        }
        assert!(Instant::now() < deadline, "never traced");
    };
    let run = |words: &[&str]| discnice(scene.path()).args(words).status().unwrap().success();
    assert!(run(&["class", "set", &name, "--disk", "1M"]));
    std::thread::sleep(Duration::from_secs(1));
    let (by, shown) = shown(scene.path(), job.0.id());
    assert!(run(&["class", "rm", "--force", &name]));
    assert!(shown["escape"].as_str().unwrap().contains("traced"), "{shown:#}");
    assert!(by["unheld"].as_u64() > Some(1 << 20), "{by:#}");
}
