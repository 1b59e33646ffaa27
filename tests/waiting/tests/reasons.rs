//! `run --summary` names what a job waited for, rightly, and for how long by the clock; `status` and reports do, too.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::process::{Group, Outcome, run};
use discnice_tests::{product, skip};
use serde_json::Value;
use tempfile::TempDir;

/// A part of the time that the whole may differ from what is expected.
const TOLERANCE: f64 = 0.35;

/// A directory with a file of 64 MiB that is on the disk.
fn scene() -> TempDir {
    let folder = product::folder();
    let file = folder.path().join("data");
    fs::write(&file, vec![1; 64 << 20]).expect("room for a file");
    fs::File::open(&file).and_then(|file| file.sync_all()).expect("a disk");
    folder
}

fn summarised(folder: &TempDir, options: &[&str], command: &[&str]) -> Outcome {
    let mut run_it = product::discnice(["run", "--summary"]);
    run_it.args(options).arg("--").args(command).current_dir(folder.path());
    run(&mut run_it).succeeded()
}

/// What `waited 1.9 of 2.1 s (7.5 s of all threads): 1.9 s for REASON` says: the three numbers, and the reasons.
fn waits(outcome: &Outcome) -> (f64, f64, f64, String) {
    let told = outcome.complaint();
    let line = told.lines().find_map(|line| line.strip_prefix("discnice: waited "));
    let line = line.unwrap_or_else(|| panic!("nothing was waited for: {told}"));
    let (numbers, reasons) = line.split_once("): ").expect("reasons");
    let numbers: Vec<f64> =
        numbers.split([' ', '(']).filter_map(|word| word.parse().ok()).collect();
    let [clock, elapsed, threads] = numbers[..] else { panic!("three numbers: {line}") };
    assert!(clock <= elapsed + 0.05 && clock <= threads + 0.05, "{line}");
    (clock, elapsed, threads, reasons.to_owned())
}

/// The job waited most of its time, for this alone.
fn waits_for(outcome: &Outcome, reason: &str) {
    let (clock, elapsed, _, reasons) = waits(outcome);
    assert!(clock > elapsed * (1.0 - TOLERANCE), "{outcome:?}");
    let longest = reasons.split_once(" s ").map_or("", |(_, longest)| longest);
    assert!(longest.starts_with(reason), "not {reason:?}: {outcome:?}");
}

const READ: [&str; 6] = ["dd", "if=data", "of=/dev/null", "bs=64k", "iflag=direct", "count=120"];

#[test]
fn a_limit_of_the_disk() {
    let folder = scene();
    waits_for(&summarised(&folder, &["-d", "4M"], &READ), "for its limit (disk: 4 MiB/s)");
    let write = ["dd", "if=/dev/zero", "of=made", "bs=64k", "count=120"];
    let written = summarised(&folder, &["--disk-write", "4M"], &write);
    waits_for(&written, "for its limit (disk, writing: 4 MiB/s)");
    let outside = summarised(&folder, &["-d", "4M", "--mechanism", "seccomp"], &READ);
    waits_for(&outside, "for its limit (disk: 4 MiB/s)");
}

#[test]
fn threads_that_wait_at_once_wait_once_by_the_clock() {
    let folder = scene();
    let four = "for i in 1 2 3 4; do dd if=data of=/dev/null bs=64k iflag=direct count=30 2>&1 & done; wait";
    let outcome = summarised(&folder, &["-d", "4M"], &["sh", "-c", four]);
    waits_for(&outcome, "for its limit (disk: 4 MiB/s)");
    let (clock, elapsed, threads, _) = waits(&outcome);
    assert!(threads > 1.5 * elapsed && clock <= elapsed + 0.05, "{outcome:?}");
}

#[test]
fn a_limit_of_calls_on_names() {
    let folder = product::folder();
    let make = "mkdir t && cd t && i=0; while [ $i -lt 900 ]; do : >$i; i=$((i+1)); done";
    run(product::as_user("sh").args(["-c", make]).current_dir(folder.path())).succeeded();
    let removed = summarised(&folder, &["--meta-ops", "500"], &["rm", "-r", "t"]);
    waits_for(&removed, "for its limit (calls on names: 500 a second)");
    assert!(removed.complaint().contains("calls on names"), "{removed:?}");
}

#[test]
fn a_limit_of_the_network() {
    if Command::new("python3").arg("--version").output().is_err() {
        skip!("no python3");
    }
    let sends = "import socket, threading\n\
                 a = socket.create_server(('127.0.0.1', 0))\n\
                 b = socket.create_connection(a.getsockname())\n\
                 c, _ = a.accept()\n\
                 threading.Thread(target=lambda: [0 for _ in iter(lambda: c.recv(65536), b'')], daemon=True).start()\n\
                 b.sendall(b'x' * (2 << 20))";
    let folder = product::folder();
    let options = ["--net-up", "1M", "--net-loopback"];
    let sent = summarised(&folder, &options, &["python3", "-c", sends]);
    let (_, _, _, reasons) = waits(&sent);
    assert!(reasons.contains("for its limit (network, sending: 1 MiB/s)"), "{sent:?}");
    assert!(sent.complaint().contains(", sent 2 MiB"), "{sent:?}");
}

#[test]
fn others_and_the_one_that_moved_most() {
    let folder = scene();
    let script = "while :; do dd if=data of=/dev/null bs=1M iflag=direct 2>/dev/null; done";
    let mut other = product::as_user("sh");
    let other = Group::start(other.args(["-c", script]).current_dir(folder.path()));
    // For a while, however fast the disk is and whatever else uses it.
    let reading = "timeout 3 sh -c 'while :; do dd if=data of=/dev/null bs=64k iflag=direct 2>&1; done'; true";
    let job = ["sh", "-c", reading];
    let outcome = summarised(&folder, &["-d", "1M", "--when", "busy"], &job);
    drop(other);
    let (_, _, _, reasons) = waits(&outcome);
    assert!(reasons.contains("s for others on its disks (most: dd, process "), "{outcome:?}");
}

#[test]
fn a_pause_and_what_status_and_the_report_say() {
    let (folder, class) = (scene(), Class::new("2M"));
    let report = folder.path().join("report.json");
    let mut job = product::discnice(["run", "--summary", "--class", class.name(), "--disk", "2M"]);
    job.arg("--report").arg(&report).arg("--").args(READ).current_dir(folder.path());
    let paused = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&mut job).succeeded());
        until_it_waits_for(&class, "total");
        run(&mut product::discnice(["pause", class.name()])).succeeded();
        until_it_waits_for(&class, "paused");
        std::thread::sleep(Duration::from_millis(700));
        run(&mut product::discnice(["resume", class.name()])).succeeded();
        running.join().expect("it ends")
    });
    let (_, _, _, reasons) = waits(&paused);
    assert!(reasons.contains("s while it was paused"), "{paused:?}");
    assert!(reasons.contains("s for its limit (disk: 2 MiB/s)"), "{paused:?}");
    let record: Value = read_json(&report);
    let part = |reason: &str| {
        let mut parts = record["waited_for"].as_array().expect("an array").iter();
        let part = parts.find(|part| part["reason"] == reason);
        part.and_then(|part| part["seconds"].as_f64()).unwrap_or(0.0)
    };
    assert!(part("paused") > 0.5 && part("total") > 1.0, "{record}");
    let all = part("paused") + part("total");
    assert!(all <= record["seconds"].as_f64().expect("a number") + 0.05, "{record}");
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a report")).expect("JSON")
}

fn until_it_waits_for(class: &Class, reason: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let waits = || {
        let shown = run(&mut product::discnice(["class", "show", class.name(), "--json"]));
        let all: Value = serde_json::from_slice(&shown.output).unwrap_or_default();
        all[0]["waits_for"] == reason
    };
    while !waits() {
        assert!(Instant::now() < deadline, "it does not wait for {reason}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
