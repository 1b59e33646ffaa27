//! The program from outside: the emulated disk on a real kernel, and bad input.
//!
//! The disk needs root, FUSE and loop devices, and there is one for the whole machine: where that
//! cannot be had the test says so and is skipped.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use discnice_requirements::skip;

const STATE: &str = "/run/discnice-eval";

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_discnice-eval"))
}

fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("the program was built")
}

/// Runs it and expects success; returns what it printed.
fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Runs it and expects our exit status and one line that contains `words`.
fn refuse(arguments: &[&str], words: &str) {
    let output = run(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{arguments:?}: {complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("discnice-eval: ") && complaint.contains(words), "{complaint}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("there is /proc").uid() == 0
}

/// Takes the disk down whatever happens in a test.
struct Down;

impl Drop for Down {
    fn drop(&mut self) {
        run(&["disk", "down", "--force"]);
    }
}

fn left_behind() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("there is /proc");
    let mut left: Vec<String> =
        mounts.lines().filter(|line| line.contains("discnice-eval")).map(str::to_owned).collect();
    for entry in fs::read_dir("/sys/block").expect("there is /sys").flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        left.extend(backing.ok().filter(|file| file.contains("discnice-eval")));
    }
    left.extend(Path::new(STATE).exists().then(|| STATE.to_owned()));
    left
}

#[test]
fn a_disk_from_up_to_down_and_after_a_crash() {
    if !is_root() || Path::new(STATE).exists() {
        skip!("needs root and no disk that is up");
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mount = folder.path().join("mount");
    let mount = mount.to_str().expect("text");
    let up = ["disk", "up", "--profile", "ssd", "--size", "64M", "--mount", mount];
    let first = run(&up);
    if !first.status.success() {
        skip!("{}", String::from_utf8_lossy(&first.stderr));
    }
    let down = Down;
    succeed(&["disk", "down"]);
    refuse(&["disk", "up", "--mount", "/usr"], "not empty");
    refuse(&["disk", "up", "--mount", "relative"], "absolute");
    refuse(&["disk", "up", "--size", "64M", "--scheduler", "none-such"], "it has none");
    assert_eq!(left_behind(), Vec::<String>::new());
    assert_eq!(succeed(&up).trim(), mount);
    assert_eq!(String::from_utf8_lossy(&first.stdout).trim(), mount);
    assert_eq!(fs::metadata(STATE).expect("it is there").mode() & 0o777, 0o700);
    refuse(&up, "a disk is up");
    written_data_survives_a_drop(Path::new(mount));
    succeed(&["disk", "down"]);
    assert_eq!(left_behind(), Vec::<String>::new());
    assert!(!Path::new(mount).exists());
    refuse(&["disk", "drop"], "no disk is up");

    succeed(&up);
    kill_server();
    refuse(&["disk", "stats"], "disk down");
    succeed(&["disk", "down"]);
    assert_eq!(left_behind(), Vec::<String>::new());
    drop(down);
}

fn written_data_survives_a_drop(mount: &Path) {
    let owner = fs::metadata(mount).expect("it is mounted");
    assert_ne!(owner.uid(), 0, "the disk belongs to an ordinary user");
    let file = mount.join("file");
    let script = format!("head -c 5000000 /dev/zero | tr '\\0' x > {}", file.display());
    let status = Command::new("sh")
        .args(["-c", &script])
        .uid(owner.uid())
        .gid(owner.gid())
        .status()
        .expect("there is a shell");
    assert!(status.success(), "the user can write");
    let counted = || -> (u64, u64) {
        let text = succeed(&["disk", "stats", "--json"]);
        let stats: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let number = |path: &str| stats.pointer(path).and_then(|n| n.as_u64()).expect(path);
        (number("/model/read_bytes"), number("/device/read_bytes"))
    };
    succeed(&["disk", "drop"]);
    let before = counted();
    let content = fs::read(&file).expect("it is there");
    assert!(content.len() == 5_000_000 && content.iter().all(|byte| *byte == b'x'));
    let after = counted();
    assert!(after.0 - before.0 >= 5_000_000, "the cache was not dropped: {before:?} {after:?}");
    assert!(after.1 - before.1 >= 5_000_000);
    let busy = fs::File::open(&file).expect("it is there");
    refuse(&["disk", "drop"], "in use");
    refuse(&["disk", "down"], "in use");
    drop(busy);
    assert_eq!(fs::read(&file).expect("still there").len(), 5_000_000);
}

fn kill_server() {
    let text = fs::read(Path::new(STATE).join("state.json")).expect("it is recorded");
    let state: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    let pid = state.pointer("/server/pid").and_then(|pid| pid.as_u64()).expect("a process");
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.expect("there is kill").success());
    // The kernel takes a moment to notice.
    std::thread::sleep(std::time::Duration::from_millis(200));
}

#[test]
fn bad_input_changes_nothing() {
    refuse(&["run", "no-such-figure"], "no-such-figure");
    refuse(&["report", "--record", "/no/such/directory"], "no records");
    if is_root() {
        refuse(&["disk", "up", "--size", "1M"], "too small");
        refuse(&["disk", "up", "--size", "8000T"], "does not fit");
        refuse(&["disk", "up", "--owner", "root"], "must not be root");
        refuse(&["disk", "up", "--owner", "no-such-user"], "no user");
    } else {
        refuse(&["disk", "up"], "needs root");
        refuse(&["disk", "down"], "needs root");
    }
}

#[test]
fn the_list_says_what_is_missing() {
    let text = succeed(&["list", "--discnice", "/no/such/discnice"]);
    let line = |name: &str| {
        let found = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        found.unwrap_or_else(|| panic!("{name} is not listed")).to_owned()
    };
    assert!(line("gray-box-figure-4").contains("not available: needs other kernels"));
    assert!(line("discnice-table-8").contains("/no/such/discnice"));
    assert!(line("discnice-table-1").contains("sequential beside rsync"));
}
