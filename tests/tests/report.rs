//! `run --report`: what it says agrees with what the job did, and the job does not notice.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use discnice_tests::process::{Outcome, run};
use discnice_tests::{cold, product};
use serde_json::Value;

const SIZE: u64 = 4 << 20;

/// Runs a command at 4 MiB/s with a report of this name in `folder`.
fn reported(folder: &Path, report: &str, command: &[&str]) -> Outcome {
    let words = ["run", "--disk", "4M", "--report", report, "--"];
    let words: Vec<OsString> = words.iter().chain(command).map(OsString::from).collect();
    run(product::discnice(&words).current_dir(folder))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the report is there")).expect("it is JSON")
}

fn number(record: &Value, pointer: &str) -> f64 {
    record.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {record}"))
}

fn sum(record: &Value, list: &str, field: &str) -> f64 {
    let entries = record[list].as_array().expect("a list");
    entries.iter().map(|entry| entry[field].as_f64().expect("a number")).sum()
}

#[test]
fn a_limit_that_holds_only_while_others_are_busy_is_reported_as_that() {
    let folder = product::folder();
    let words = ["run", "--summary", "--report", "r.html", "--", "true"];
    let outcome = run(product::discnice(words).current_dir(folder.path())).succeeded();
    assert!(outcome.complaint().contains("/s while others are busy)"), "{outcome:?}");
    let page = fs::read_to_string(folder.path().join("r.html")).expect("the report is there");
    assert!(page.contains("/s while others are busy"), "{page}");
}

//= rate-windows/4-histogram
#[test]
fn the_numbers_are_those_of_the_job() {
    let folder = product::folder();
    cold::make(&folder.path().join("data"), SIZE as usize).expect("a file");
    let outcome = reported(folder.path(), "r.json", &["cat", "data"]).succeeded();
    assert_eq!(outcome.output.len() as u64, SIZE);
    let record = json(&folder.path().join("r.json"));
    let read = number(&record, "/disk/read_bytes");
    assert!(read >= SIZE as f64 && read < SIZE as f64 + 2e6, "{read}");
    assert_eq!(number(&record, "/limits/total"), SIZE as f64);
    assert_eq!(record["when"], "always");
    let seconds = number(&record, "/seconds");
    assert!((0.8..8.0).contains(&seconds), "4 MiB at 4 MiB/s: {seconds}");
    assert!(number(&record, "/waits") >= 3.0);
    let verdict = record["verdict"].as_str().expect("it waited");
    assert!(verdict.contains("s for its limit (disk: 4 MiB/s)"), "{verdict}");
    assert_eq!(sum(&record, "samples", "read_bytes"), read, "no sample is lost");
    assert_eq!(sum(&record, "samples", "waits"), number(&record, "/waits"));
    assert_eq!(sum(&record, "wait_histogram", "count"), number(&record, "/waits"));
    let samples = record["samples"].as_array().expect("a list").len() as f64;
    assert!((seconds * 10.0 - samples).abs() <= 3.0, "ten samples a second: {samples}");
}

//= rate-windows/3.2-shortest
#[test]
fn short_waits_are_put_together() {
    let folder = product::folder();
    cold::make(&folder.path().join("data"), SIZE as usize).expect("a file");
    // Each of these is worth a quarter of a millisecond.
    let command = ["dd", "if=data", "of=/dev/null", "bs=1k", "iflag=direct", "status=none"];
    let _ = reported(folder.path(), "r.json", &command).succeeded();
    let record = json(&folder.path().join("r.json"));
    let waits = number(&record, "/waits");
    assert!((10.0..4096.0).contains(&waits), "{waits} waits of 4096 calls");
    for range in record["wait_histogram"].as_array().expect("a list") {
        assert!(number(range, "/to_seconds") >= 0.001, "{range}");
    }
}

#[test]
fn what_others_did_in_the_class_before_is_left_out() {
    let folder = product::folder();
    for estimator in ["account", "predict"] {
        let data = format!("{estimator}.data");
        cold::make(&folder.path().join(&data), SIZE as usize).expect("a file");
        let class = format!("report-{estimator}-{}", std::process::id());
        let run_in_class = |report: &str, command: &[&str]| {
            let words = ["run", "--class", &class, "--disk", "40M", "--estimator", estimator];
            let words = words.into_iter().chain(["--summary", "--report", report, "--"]);
            let words: Vec<&str> = words.chain(command.iter().copied()).collect();
            let outcome = run(product::discnice(&words).current_dir(folder.path())).succeeded();
            (json(&folder.path().join(report)), outcome.complaint())
        };
        let (first, _) = run_in_class("1.json", &["cat", &data]);
        let (second, summary) = run_in_class("2.json", &["true"]);
        let _ = run(&mut product::discnice(["class", "rm", &class])).succeeded();
        let name = if estimator == "account" { "read_bytes" } else { "predicted_bytes" };
        let bytes = |record: &Value| number(record, &format!("/disk/{name}"));
        assert!(bytes(&first) >= SIZE as f64, "{first}");
        assert!(bytes(&second) < SIZE as f64 / 2.0, "{second}");
        assert_eq!(second["class"], class.as_str());
        assert!(!summary.contains("MiB, account"), "{summary}");
    }
}

#[test]
fn pages_and_pictures_need_nothing_else() {
    let folder = product::folder();
    let _ = reported(folder.path(), "r.html", &["sh", "-c", ": '<b>&'"]).succeeded();
    let page = fs::read_to_string(folder.path().join("r.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>"), "arguments are text");
    assert!(page.contains("It waited for nothing."), "{page}");
    for outside in ["<script", "<link", "<img", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let _ = reported(folder.path(), "r.svg", &["true"]).succeeded();
    let picture = fs::read_to_string(folder.path().join("r.svg")).expect("a picture");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}

#[test]
fn the_commands_end_is_told_and_repeated() {
    let folder = product::folder();
    let outcome = reported(folder.path(), "r.json", &["sh", "-c", "exit 7"]);
    assert_eq!(outcome.status, Some(7));
    assert_eq!(json(&folder.path().join("r.json"))["end"]["status"], 7);
    let outcome = reported(folder.path(), "r.json", &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(outcome.signal, Some(15));
    let record = json(&folder.path().join("r.json"));
    assert_eq!((&record["end"]["status"], &record["end"]["signal"]), (&Value::Null, &15.into()));
}

#[test]
fn reports_that_cannot_be_written_start_nothing() {
    let folder = product::folder();
    fs::create_dir(folder.path().join("folder.json")).expect("a folder");
    run(Command::new("mkfifo").arg(folder.path().join("fifo.json"))).succeeded();
    let long = "x".repeat(251) + ".json";
    let names = [
        "x.pdf",
        "x",
        "",
        "/no/such/folder/x.json",
        "folder.json",
        "/proc/x.svg",
        "fifo.json",
        &long,
    ];
    for name in names {
        let outcome = reported(folder.path(), name, &["touch", "started"]);
        assert_eq!(outcome.status, Some(125), "{name}: {outcome:?}");
        let complaint = outcome.complaint();
        assert_eq!(complaint.lines().count(), 1, "{name}: {complaint}");
        assert!(complaint.starts_with("discnice: ") && complaint.contains(name), "{complaint}");
        assert!(!complaint.contains("entity not found"), "{complaint}");
        assert!(!folder.path().join("started").exists(), "{name}");
    }
    let left = fs::read_dir(folder.path()).expect("readable").count();
    assert_eq!(left, 2, "no draft is left");
}

#[test]
fn a_report_replaces_the_file_behind_a_link() {
    let folder = product::folder();
    let _ = reported(folder.path(), "kept.json", &["false"]);
    symlink("kept.json", folder.path().join("r.json")).expect("room");
    let _ = reported(folder.path(), "r.json", &["true"]).succeeded();
    assert!(folder.path().join("r.json").is_symlink());
    assert_eq!(json(&folder.path().join("kept.json"))["command"][0], "true");
}

#[test]
fn a_report_is_kept_beside_its_place_if_that_was_taken_meanwhile() {
    let folder = product::folder();
    let outcome = reported(folder.path(), "r.json", &["mkdir", "r.json"]);
    let complaint = outcome.complaint();
    assert!(complaint.contains("r.json: Is a directory; it is in "), "{complaint}");
    let (_, kept) = complaint.trim_end().rsplit_once("; it is in ").expect("told");
    assert_eq!(json(&folder.path().join(kept))["command"][0], "mkdir");
}

#[test]
fn a_report_is_nowhere_if_its_folder_is_gone() {
    let folder = product::folder();
    run(product::as_user("mkdir").arg("sub").current_dir(folder.path())).succeeded();
    let outcome = reported(folder.path(), "sub/r.json", &["rm", "-r", "sub"]);
    let complaint = outcome.succeeded().complaint();
    assert!(complaint.contains("cannot write the report"), "{complaint}");
    assert!(!complaint.contains("; it is in "), "{complaint}");
}

#[test]
fn a_report_that_is_too_long_is_told_with_its_own_name() {
    let folder = product::folder();
    let script = "ulimit -f 1; exec \"$0\" run --report r.html true";
    let mut command = product::as_user("sh");
    command.args(["-c", script]).arg(product::program()).current_dir(folder.path());
    let complaint = run(&mut command).succeeded().complaint();
    let told = "discnice: cannot write the report r.html: File too large";
    assert!(complaint.lines().any(|line| line == told), "{complaint}");
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "no draft is left");
}
