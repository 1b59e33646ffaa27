//! `discnice linger` of real processes, by figures given and measured.

use std::process::{Child, Command, Output, Stdio};

fn start(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap()
}

fn linger(job: &Child, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.arg("linger").args(words).arg(job.id().to_string()).output().unwrap()
}

fn end(mut job: Child) {
    job.kill().unwrap();
    job.wait().unwrap();
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

//= rate-windows/8-linger
#[test]
fn stay_and_go() {
    let job = start("exec sleep 60");
    let given = ["--here", "0.1", "--moving", "18"];
    let (status, text) = said(&linger(&job, &[&given[..], &["--busy-for", "10"]].concat()));
    assert_eq!(status, Some(1));
    assert!(text.starts_with("stay: the others may soon be done") && text.contains("20"), "{text}");
    let (status, text) = said(&linger(&job, &[&given[..], &["--busy-for", "30"]].concat()));
    assert_eq!(status, Some(0));
    assert!(text.starts_with("go: "), "{text}");
    let words = [&given[..], &["--busy-for", "30", "--left", "1", "--json"]].concat();
    let (status, text) = said(&linger(&job, &words));
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, told["decision"].as_str()), (Some(1), Some("stay")));
    assert_eq!(told["reason"], "it ends sooner than it could have moved");
    end(job);
}

#[test]
fn what_would_be_moved_is_the_jobs_memory() {
    let job = start("exec sleep 60");
    let moving = |words: &[&str]| {
        let output = linger(&job, &[&["--here", "0.5", "--json"], words].concat());
        let told: serde_json::Value = serde_json::from_str(&said(&output).1).unwrap();
        told["moving_s"].as_f64().unwrap()
    };
    assert!((moving(&["--rate", "10M", "--size", "50M"]) - 5.0).abs() < 0.01);
    let own = moving(&["--rate", "1M"]);
    assert!((0.1..200.0).contains(&own), "{own} MiB of a sleep");
    end(job);
}

#[test]
fn a_job_that_waits_for_a_processor_is_measured_and_waited_for() {
    // On one processor, beside two of their kind: a third is left.
    let spin = "taskset -c 0 sh -c 'while :; do :; done'";
    let others = [start(&format!("exec {spin}")), start(&format!("exec {spin}"))];
    let job = start(&format!("exec {spin}"));
    let (_, text) = said(&linger(&job, &["--moving", "100", "--watch", "1", "--json"]));
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let here = told["here"].as_f64().unwrap();
    assert!(here < 0.6, "{text}");
    assert_eq!(told["decision"], "stay");
    // Moving takes half a second; after some looks it is worth it.
    let (status, text) = said(&linger(&job, &["--wait", "--moving", "0.5", "--watch", "0.3"]));
    assert!(status == Some(0) && text.starts_with("go: "), "{text}");
    others.into_iter().for_each(end);
    end(job);
}

#[test]
fn the_end_of_the_job_ends_the_wait() {
    // It is this test's child, and has to be waited for to be gone.
    let mut job = start("exec sleep 1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.args(["linger", "--wait", "--moving", "1000", "--watch", "0.1", &job.id().to_string()]);
    let waiting = command.stdout(Stdio::piped()).spawn().unwrap();
    job.wait().unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(said(&output), (Some(1), "ended\n".into()));
}

#[test]
fn the_end_of_the_job_is_json_where_that_was_asked_for() {
    let mut job = start("exec sleep 1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.args(["linger", "--wait", "--json", "--moving", "1000", "--watch", "0.1"]);
    let waiting = command.arg(job.id().to_string()).stdout(Stdio::piped()).spawn().unwrap();
    job.wait().unwrap();
    let (status, text) = said(&waiting.wait_with_output().unwrap());
    let told: serde_json::Value = serde_json::from_str(&text).expect(&text);
    assert_eq!((status, told["decision"].as_str()), (Some(1), Some("stay")));
    assert_eq!(told["reason"], "it has ended");
}

#[test]
fn wrong_words_are_one_line() {
    let job = start("exec sleep 60");
    for (words, why) in [
        (&["--here", "2", "--moving", "1"][..], "share from 0 to 1"),
        (&["--moving", "long"], "number of seconds"),
        (&["--here", "0.5"], "--rate"),
        (&["--here", "0.5", "--rate", "unlimited"], "how fast"),
        (&["--moving", "1", "--watch", "0"], "--watch must be above 0"),
    ] {
        let output = linger(&job, words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{told}");
        assert!(told.contains(why) && told.lines().count() == 1, "{told}");
    }
    end(job);
    let output = Command::new(env!("CARGO_BIN_EXE_discnice"))
        .args(["linger", "--moving", "1", "999999999"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
}
