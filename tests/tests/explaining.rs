//! `discnice explain` and `run --dry-run`: what would hold a command, and what holds and delays what runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_tests::attaching::Sleeper;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, run};
use discnice_tests::{product, skip};
use serde_json::Value;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

fn explain(what: &str) -> Value {
    let told = run(&mut product::discnice(["explain", "--json", what])).succeeded();
    serde_json::from_slice(&told.output).expect("JSON")
}

/// Whether a line of this field begins so.
fn says(explained: &Value, field: &str, beginning: &str) -> bool {
    let mut lines = explained[field].as_array().expect("an array").iter();
    lines.any(|line| line.as_str().is_some_and(|line| line.starts_with(beginning)))
}

/// Waits until `explain` says so.
fn until_it_says(what: &str, field: &str, beginning: &str) {
    let deadline = Instant::now() + PATIENCE;
    // The first command makes the class.
    while run(&mut product::discnice(["explain", what])).status != Some(0) {
        assert!(Instant::now() < deadline, "no {what}");
    }
    loop {
        let explained = explain(what);
        if says(&explained, field, beginning) {
            return;
        }
        assert!(Instant::now() < deadline, "{field} never says {beginning:?}: {explained}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads a file past the cache, again and again.
fn reading(mut command: Command, folder: &TempDir) -> Command {
    let file = folder.path().join("data");
    if !file.exists() {
        fs::write(&file, vec![1; 64 << 20]).expect("room for a file");
        fs::File::open(&file).and_then(|file| file.sync_all()).expect("a disk");
    }
    let script = "while :; do dd if=\"$0\" of=/dev/null bs=64k iflag=direct 2>/dev/null; done";
    command.args(["sh", "-c", script]).arg(file);
    command
}

#[test]
fn a_dry_run_starts_nothing() {
    let folder = product::folder();
    let dry = |words: &[&str]| {
        let mut command = product::discnice(["run", "--dry-run"]);
        run(command.args(words).current_dir(folder.path()).env("PATH", "/usr/bin:/bin"))
    };
    let told = dry(&["-d", "5M", "--class", "dry-run-test", "touch", "started"]).succeeded().text();
    for line in [
        "about     command touch: ",
        "class     dry-run-test (new)\n",
        "limits    disk: 5 MiB/s\n",
        "held by   the library in it\n",
    ] {
        assert!(told.contains(line), "{line:?}: {told}");
    }
    assert!(!folder.path().join("started").exists());
    let all = run(&mut product::discnice(["class", "list"])).succeeded().text();
    assert!(!all.contains("dry-run-test"), "{all}");
    let timed = ["--until", "2999-01-02 03:04", "--then", "stop", "--only-when", "load<9", "true"];
    let told = dry(&timed).succeeded().text();
    for line in [
        "when      only while the load is below 9; paused otherwise\n",
        "          until 2999-01-02 03:04, then it is paused\n",
    ] {
        assert!(told.contains(line), "{line:?}: {told}");
    }
    let told = dry(&["--polite", "true"]).succeeded().text();
    assert!(told.contains("held by   its progress (--polite)\n") && !told.contains("not held"));
    let missing = dry(&["no-such-program"]);
    assert!(
        missing.status == Some(127) && missing.text().contains("no such program"),
        "{missing:?}"
    );
    let folded = dry(&["--mechanism", "preload", "--disk", "5M", "--strict", "true"]);
    assert_eq!(folded.status, Some(125), "{folded:?}");
}

#[test]
fn a_command_below_a_supervisor_is_told_of_as_run_does() {
    if !Path::new("/bin/busybox").exists() {
        skip!("no static busybox");
    }
    let class = Class::new("50M");
    let program = product::program();
    let told = |command: &str| {
        let mut nested = class.run_by("seccomp");
        nested.arg(&program).args(["run", "--dry-run", "--mechanism", "seccomp", command]);
        run(&mut nested).succeeded().text()
    };
    let taken = "a supervisor of system calls is there already";
    let within = told("ls");
    assert!(within.contains(&format!("held by   the library in it alone: {taken}")), "{within}");
    let refused = told("/bin/busybox");
    let why = format!("not held  cannot be limited: it is statically linked, and {taken}");
    assert!(refused.contains(&why), "{refused}");
}

#[test]
fn a_command_is_told_of_as_doctor_does() {
    if !Path::new("/bin/busybox").exists() {
        skip!("no static busybox");
    }
    let explained = explain("/bin/busybox");
    assert!(says(&explained, "held_by", "a supervisor of its calls: it is statically linked"));
    let doctor = run(&mut product::discnice(["doctor", "/bin/busybox"])).text();
    let how = explained["held_by"][0].as_str().expect("text");
    assert!(doctor.contains(&format!("can be limited, by {how}")), "{doctor}");
    let watched = ["run", "--dry-run", "--mechanism", "freeze", "--meta-ops", "9", "/bin/busybox"];
    let told = run(&mut product::discnice(watched)).succeeded().text();
    assert!(
        told.contains("--meta-ops does not hold: /bin/busybox runs without the library"),
        "{told}"
    );
    let strict = [
        "run",
        "--dry-run",
        "--strict",
        "--mechanism",
        "freeze",
        "--meta-ops",
        "9",
        "/bin/busybox",
    ];
    let told = run(&mut product::discnice(strict));
    assert_eq!(told.status, Some(125), "{told:?}");
}

#[test]
fn what_a_limit_delays_waits_for_the_limit() {
    let (folder, class) = (product::folder(), Class::new("1M"));
    let job = Group::start_silent(&mut reading(class.run(), &folder));
    until_it_says(class.name(), "waits_for", "disk: 1 MiB/s; what was moved is paid for in");
    until_it_says(&job.id().to_string(), "held_by", "the library in it (preload)");
    assert_eq!(explain(&job.id().to_string())["class"], class.name());
    let idle = Class::new("1M");
    let mut sleeping = idle.run();
    sleeping.args(["sleep", "60"]);
    let sleeping = Group::start_silent(&mut sleeping);
    until_it_says(&sleeping.id().to_string(), "waits_for", "nothing of its class at this moment");
    run(&mut product::discnice(["pause", class.name()])).succeeded();
    assert!(says(&explain(class.name()), "waits_for", "`discnice resume"));
    assert!(says(&explain(&job.id().to_string()), "waits_for", "`discnice resume"));
    run(&mut product::discnice(["resume", class.name()])).succeeded();
    assert!(!says(&explain(class.name()), "waits_for", "`discnice resume"));
}

#[test]
fn what_gives_way_says_to_what() {
    let (folder, class) = (product::folder(), Class::new("1M"));
    let busy = ["class", "set", class.name(), "--disk", "1M", "--when", "busy"];
    run(&mut product::discnice(busy)).succeeded();
    let mut command = product::discnice(["run", "--class", class.name()]);
    command.arg("--");
    let _job = Group::start_silent(&mut reading(command, &folder));
    let other = Group::start_silent(&mut reading(product::as_user("env"), &folder));
    let deadline = Instant::now() + PATIENCE;
    // The reader is this user's, so /proc shows it.
    while !explain(class.name())["waits_for"].to_string().contains(": dd (") {
        assert!(Instant::now() < deadline, "{}", explain(class.name()));
    }
    drop(other);
}

#[test]
fn what_is_in_no_class_is_told_how_to_get_into_one() {
    let job = Sleeper::ordinary();
    let explained = explain(&job.id());
    assert!(explained["class"].is_null());
    assert!(says(&explained, "not_held", "it is in no class; `discnice attach --disk 5M "));
}

#[test]
fn shells_are_told_of_classes_and_processes() {
    let class = Class::new("5M");
    let mut command = class.run();
    command.args(["sleep", "60"]);
    let job = Group::start_silent(&mut command);
    let told =
        |what: &str| run(&mut product::discnice(["complete-names", what])).succeeded().text();
    let deadline = Instant::now() + PATIENCE;
    let line = format!("{}\tsleep\n", job.id());
    for what in ["members", "processes"] {
        // A process that is just being executed has no command line.
        while !told(what).contains(&line) {
            assert!(Instant::now() < deadline, "{what}: {}", told(what));
        }
    }
    assert!(told("classes").lines().any(|name| name == class.name()));
    assert!(!told("processes").contains("\tkthreadd\n"));
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

/// The constants that the source of the watcher defines as tuning: name and decision record.
fn tuned_in_source() -> Vec<(String, u64)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut found = Vec::new();
    for file in files_below(&crates) {
        let folder = file.parent().and_then(Path::file_name);
        if folder.is_none_or(|folder| folder != "tuning") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        found.extend(text.lines().filter_map(|line| {
            let (name, _) = line.trim().split_once(':')?;
            let adr = line.trim().strip_suffix(';')?.rsplit_once(", adr ")?.1.parse().ok()?;
            Some((name.to_owned(), adr))
        }));
    }
    found.sort();
    found
}

#[test]
fn doctor_shows_each_constant_that_tunes_the_watcher() {
    let said = run(&mut product::discnice(["doctor", "--tuning", "--json"])).succeeded();
    let rows: Vec<Value> = serde_json::from_slice(&said.output).expect("JSON");
    let named = |row: &Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["adr"].as_u64().expect("a number"))
    };
    let mut shown: Vec<_> = rows.iter().map(named).collect();
    shown.sort();
    assert!(shown.len() > 100, "{shown:?}");
    assert_eq!(shown, tuned_in_source());
    let table = run(&mut product::discnice(["doctor", "--tuning"])).succeeded().text();
    for row in &rows {
        let (name, meaning) = (row["name"].as_str().unwrap(), row["meaning"].as_str().unwrap());
        let told = |line: &str| line.trim_start().starts_with(name) && line.ends_with(meaning);
        assert!(table.lines().any(told), "{name} is not in the table");
    }
    let stop = rows.iter().find(|row| row["name"] == "LONGEST_STOP").expect("it is tuned");
    assert_eq!((&stop["value"], &stop["unit"]), (&Value::from(50_000_000), &Value::from("ns")));
    assert!(table.contains("50.0 ms  ADR 13  Longest stop"), "{table}");
}
