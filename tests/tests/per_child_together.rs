//! `--per-child`: what concerns a job as a whole reaches its children, though each is in a class of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::attaching::until_executes;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run, run_within, until};
use discnice_tests::{cold, product};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// What each child reads.
const SIZE: u64 = 8 * MIB;
/// A shell with a child that writes its number to a file, and counts there for ever.
const COUNTS: &str =
    "(echo $BASHPID >\"$0\"; for ((n = 0; ; n++)); do echo $n >\"$0.n\"; sleep 0.02; done) & wait";

fn apart(options: &[&str]) -> Command {
    let mut run = product::discnice(["run", "--per-child"]);
    run.args(options).arg("--");
    run
}

/// What `status` shows of the class that a process is in.
fn class_of(process: u32) -> Option<Value> {
    let status = run(&mut product::discnice(["status", "--json"])).succeeded();
    let status: Value = serde_json::from_slice(&status.output).expect("JSON");
    let lists = |one: &&Value| {
        let members = one["members"].as_array();
        members.is_some_and(|all| all.iter().any(|member| member["process"] == process))
    };
    status["classes"].as_array().expect("classes").iter().find(lists).cloned()
}

/// The number of the child of [`COUNTS`], once it has a class of its own.
fn child(file: &Path) -> u32 {
    let mut found = 0;
    until("the child has a class of its own", || {
        found = fs::read_to_string(file).unwrap_or_default().trim().parse().unwrap_or(0);
        found > 0 && class_of(found).is_some_and(|class| class["child_of"].is_string())
    });
    found
}

/// Whether the child of [`COUNTS`] counts on.
fn counts(file: &Path) -> bool {
    let count = || fs::read_to_string(file.with_extension("n")).unwrap_or_default();
    let before = count();
    std::thread::sleep(Duration::from_millis(300));
    count() != before
}

#[test]
fn a_report_and_a_summary_have_the_sums_of_all_children() {
    let folder = product::folder();
    let files = ["a", "b", "c"].map(|name| {
        let path = folder.path().join(name);
        cold::make(&path, SIZE as usize).expect("a file");
        path
    });
    let report = folder.path().join("report.json");
    // The class of one is gone while others still read, and these go on to the very end of the job. Without read-ahead, so
    // that what is read is what is asked for.
    let script = "read_it() { sleep 0.2; dd if=\"$1\" of=/dev/null bs=64k iflag=direct; }\n\
                  read_it \"$0\" & wait; sleep 2.5; read_it \"$1\" & read_it \"$2\" & wait";
    let mut job = apart(&["-d", "8M", "--summary", "--report", report.to_str().expect("UTF-8")]);
    let told = run(job.args(["bash", "-c", script]).args(&files)).succeeded().complaint();
    let record = fs::read(&report).expect("a report");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    // What one reads after the last look at it is in no account.
    let read = record["disk"]["read_bytes"].as_u64().expect("a number");
    assert!((3 * SIZE - MIB..=3 * SIZE + MIB).contains(&read), "{read}: {told}: {record:#}");
    let parts = record["waited_for"].as_array().expect("parts").iter();
    let waited: f64 = parts.filter_map(|part| part["seconds"].as_f64()).sum();
    // About a second each time that 8 MiB are read, once by one child, once by two.
    assert!((0.8..4.0).contains(&waited), "{waited}: {told}: {record:#}");
    let stood = record["stood_seconds"].as_f64().expect("a number");
    assert!(stood > 1.5, "{stood}: each of the three stood: {told}: {record:#}");
    assert!(told.contains("limit 8 MiB/s each child") && told.contains("for its limit"), "{told}");
}

#[test]
fn a_job_that_is_over_at_a_time_ends_with_its_children() {
    let folder = product::folder();
    let file = folder.path().join("child");
    let mut job = apart(&["-d", "8M", "--until", "+3s"]);
    let mut job = Group::start_silent(job.args(["bash", "-c", COUNTS]).arg(&file));
    child(&file);
    until("the job ends", || job.try_wait().expect("it is ours").is_some());
    assert!(!counts(&file), "its child ends, too");
}

#[test]
fn a_job_that_is_to_end_by_a_time_is_paced_by_what_its_children_move() {
    let folder = product::folder();
    let file = folder.path().join("a");
    cold::make(&file, 32 << 20).expect("a file");
    // Without what they move the rate would be the lowest: two minutes.
    let script = "(sleep 0.2; dd if=\"$0\" of=/dev/null bs=64k iflag=direct) & wait";
    let mut job = apart(&["-d", "64M", "--finish-by", "+8s"]);
    let begun = Instant::now();
    let job = run_within(job.args(["bash", "-c", script]).arg(&file), Duration::from_secs(20));
    let took = begun.elapsed();
    assert!(job.is_some_and(|job| job.status == Some(0)), "{took:?}");
    assert!(took > Duration::from_secs(3), "not at once: {took:?}");
}

/// In a class with a name a job is a part of it: its first process, with its descendants.
#[test]
fn a_part_of_a_class_stands_and_goes_on_with_its_children() {
    let class = Class::new("8M");
    run(&mut class.command(["true"])).succeeded();
    run(&mut product::discnice(["class", "set", class.name(), "--per-child"])).succeeded();
    let folder = product::folder();
    let file = folder.path().join("child");
    let mut command = class.command(["bash", "-c", COUNTS]);
    let job = Group::start_silent(command.arg(&file));
    child(&file);
    let first = job.id().to_string();
    run(&mut product::discnice(["pause", &first])).succeeded();
    assert!(!counts(&file), "{:#}", class.show());
    run(&mut product::discnice(["resume", &first])).succeeded();
    assert!(counts(&file), "{:#}", class.show());
}

/// The class of the first process has no member any more, but what is said of it holds for its children.
#[test]
fn children_stand_and_go_on_with_their_class_after_the_first_process_has_ended() {
    let class = Class::new("8M");
    run(&mut class.command(["true"])).succeeded();
    run(&mut product::discnice(["class", "set", class.name(), "--per-child"])).succeeded();
    let folder = product::folder();
    let file = folder.path().join("child");
    let ends = COUNTS.replace("wait", "until [ -e \"$0.go\" ]; do sleep 0.05; done");
    let mut command = class.command(["bash", "-c", &ends]);
    let mut job = Group::start_silent(command.arg(&file));
    let process = child(&file);
    fs::write(file.with_extension("go"), "").expect("a file");
    until("the first process ends", || job.try_wait().expect("it is ours").is_some());
    // Longer than a class without members is looked at.
    std::thread::sleep(Duration::from_secs(2));
    run(&mut product::discnice(["class", "set", class.name(), "--disk", "4M"])).succeeded();
    let limit = || class_of(process).map(|class| class["limit_total"].clone());
    until("its child has the new limit", || limit() == Some((4 * MIB).into()));
    run(&mut product::discnice(["pause", class.name()])).succeeded();
    until("its child stands", || !counts(&file));
    run(&mut product::discnice(["resume", class.name()])).succeeded();
    until("its child goes on", || counts(&file));
}

#[test]
fn what_is_detached_goes_on_without_limits_with_its_children() {
    let folder = product::folder();
    let file = folder.path().join("child");
    let mut command = product::as_user("bash");
    // The child is born after the attachment.
    let late = format!("until [ -e \"$0.go\" ]; do sleep 0.05; done; {COUNTS}");
    command.args(["-c", &late]).arg(&file);
    let job = Group::start_silent(&mut command);
    until_executes(&job, "bash");
    let first = job.id().to_string();
    let attach = ["attach", "--background", "--per-child", "-d", "8M", &first];
    run(&mut product::discnice(attach)).succeeded();
    fs::write(file.with_extension("go"), "").expect("a file");
    let child = child(&file);
    run(&mut product::discnice(["detach", &first])).succeeded();
    until("no class holds the child", || class_of(child).is_none());
}

#[test]
fn a_child_that_has_used_up_its_total_is_told_of() {
    let folder = product::folder();
    let file = folder.path().join("a");
    cold::make(&file, SIZE as usize).expect("a file");
    let class = Class::new("8M");
    run(&mut class.command(["true"])).succeeded();
    let set = ["class", "set", class.name(), "--per-child", "--disk-total", "4M"];
    run(&mut product::discnice(set)).succeeded();
    let told = folder.path().join("told");
    let mut command = product::discnice(["run", "-c", class.name(), "--progress", "--"]);
    let reads = "(sleep 0.2; dd if=\"$0\" of=/dev/null bs=64k iflag=direct) & wait";
    command.args(["bash", "-c", reads]).arg(&file);
    command.stdout(Stdio::null()).stderr(File::create(&told).expect("a file"));
    let mut job = Group::start(&mut command);
    let remedy = format!("`discnice class set {} --disk-total +SIZE`", class.name());
    let told = || fs::read_to_string(&told).unwrap_or_default();
    until("it is told of", || told().contains("used up its disk total of 4 MiB"));
    assert!(told().contains(&remedy), "{}", told());
    assert!(job.try_wait().expect("it is ours").is_none(), "it is held");
    run(&mut product::discnice(["class", "set", class.name(), "--disk-total", "+8M"])).succeeded();
    until("it goes on", || job.try_wait().expect("it is ours").is_some());
}
