//! `discnice run --polite --phase`: which phase a job is in is told from outside, and each has targets of its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

fn discnice(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    command.env("XDG_RUNTIME_DIR", scene).env("XDG_STATE_HOME", scene.join("state"));
    command.stdin(Stdio::null());
    command
}

/// Waits until `status` says that the job is in this phase.
fn await_phase(scene: &Path, job: &Child, phase: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let output = discnice(scene).args(["status", "--json"]).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let jobs = told["jobs"].as_array().unwrap();
        if jobs.iter().any(|one| one["process"] == job.id() && one["phase"] == phase) {
            return;
        }
        assert!(Instant::now() < deadline, "not in phase {phase}: {told}");
        sleep(Duration::from_millis(20));
    }
}

//= ms-manners/4.4-outside-phases
#[test]
fn each_phase_that_a_file_tells_has_targets_of_its_own() {
    let scene = tempfile::tempdir().unwrap();
    let (phase, log) = (scene.path().join("phase"), scene.path().join("log"));
    fs::write(&phase, "mark\n").unwrap();
    let script = r#"while [ ! -e "$0.end" ]; do echo line >> "$0"; sleep 0.05; done"#;
    let (spec, mark) =
        (format!("file:{}", phase.display()), format!("mark@lines:{}", log.display()));
    let words = ["run", "--polite", "--metric", &mark, "--metric", "cpu", "--phase", &spec];
    let mut job = discnice(scene.path())
        .args(words)
        .args(["--", "sh", "-c", script])
        .arg(&log)
        .spawn()
        .unwrap();
    await_phase(scene.path(), &job, "mark");
    sleep(Duration::from_secs(1));
    fs::write(&phase, "sweep\n").unwrap();
    await_phase(scene.path(), &job, "sweep");
    sleep(Duration::from_secs(1));
    fs::write(log.with_extension("end"), "").unwrap();
    assert!(job.wait().unwrap().success());
    let sets = targets(&scene.path().join("state/discnice/targets"));
    let sizes: Vec<&Value> = sets.as_object().unwrap().values().map(|set| &set["sums"]).collect();
    assert_eq!(sizes.len(), 2, "{sets}");
}

/// The targets that were saved, set by set.
fn targets(directory: &Path) -> Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let file =
            files.map(|one| one.path()).find(|one| one.extension().is_some_and(|e| e == "targets"));
        if let Some(text) = file.and_then(|file| fs::read_to_string(file).ok()) {
            let saved: Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
            return saved["targets"]["sets"].clone();
        }
        assert!(Instant::now() < deadline, "no targets");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn phases_that_cannot_be_are_refused_in_one_line() {
    let scene = tempfile::tempdir().unwrap();
    for (words, why) in [
        (["--phase", "tape"], "file:PATH, match:PATH:REGEX or moving"),
        (["--phase", "match:/log:("], "bad regular expression"),
        (["--metric", "mark@cpu"], "say --phase file:PATH"),
    ] {
        let mut command = discnice(scene.path());
        let output =
            command.args(["run", "--polite"]).args(words).args(["--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}
