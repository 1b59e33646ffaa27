//! `discnice run --polite`: what its options and its configuration say, and what is told of a job, its progress and
//! its targets.

mod polite_support;

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use polite_support::{Killed, Scene, environment, polite, said, soon, text, told, within};

//= ms-manners/3-false-progress
#[test]
fn progress_that_is_not_the_jobs_is_told() {
    let scene = Scene::new();
    let log = scene.path().join("log");
    let mut lines = fs::File::create(&log).unwrap();
    let metric = format!("lines:{}", log.display());
    let mut job = polite(scene.path(), &["--metric", &metric, "--", "sleep", "100"]);
    let job = Killed(job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // It is looked at five times a second while there is progress.
    let notices = within(Duration::from_secs(30), || {
        writeln!(lines, "done").unwrap();
        let notices = told(scene.path(), job.0.id())?["notices"].to_string();
        notices.contains("is not its progress").then_some(notices)
    });
    let notices = notices.expect("nothing was told");
    assert!(notices.contains(&metric), "{notices}");
}

#[test]
fn a_target_file_set_aside_is_told_in_status() {
    let scene = Scene::new();
    let targets = scene.path().join("state/discnice/targets");
    fs::create_dir_all(&targets).unwrap();
    fs::write(targets.join("tar-0123.set-aside"), "damaged").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
    let output = environment(command.arg("status"), scene.path()).output().unwrap();
    assert!(text(&output).contains("tar-0123.set-aside: progress targets"), "{output:?}");
}

#[test]
fn a_state_directory_that_takes_nothing_is_told_of() {
    let scene = Scene::new();
    let state = scene.path().join("state");
    fs::write(&state, "a file in its place").unwrap();
    let output = polite(scene.path(), &["--", "true"]).output().unwrap();
    assert_told_once(&output);
    fs::remove_file(&state).unwrap();
    let output = polite(scene.path(), &["--", "true"]).output().unwrap();
    assert_eq!((text(&output).as_str(), output.stderr.as_slice()), ("", &b""[..]));
    assert_eq!(
        fs::read_dir(state.join("discnice/targets")).unwrap().count(),
        0,
        "it left something"
    );
}

#[test]
fn a_full_state_directory_is_told_of() {
    let scene = Scene::new();
    let state = scene.path().join("state");
    fs::create_dir(&state).unwrap();
    let script = "mount -t tmpfs -o size=8k,mode=700 none \"$1\" || exit 42; cat /dev/zero > \"$1/full\"; \
                  exec \"$2\" run --polite -- true";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&state);
    let output = environment(command.arg(env!("CARGO_BIN_EXE_discnice")), scene.path()).output();
    match output {
        Ok(output) if !matches!(output.status.code(), Some(1 | 42)) => {
            let told = String::from_utf8_lossy(&output.stderr).replace("cat: write error", "");
            assert!(told.contains("No space left on device"), "{told}");
            assert_eq!(told.matches("targets are not kept").count(), 1, "{told}");
            assert_eq!(output.status.code(), Some(0));
        }
        // As the test beside this one does it without root.
        _ => assert_ne!(rustix::process::geteuid().as_raw(), 0, "root may mount"),
    }
}

fn assert_told_once(output: &Output) {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(told.matches("targets are not kept").count(), 1, "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

//= ms-manners/4.5-outside-priority
#[test]
fn the_priority_is_the_options_or_follows_the_class() {
    let scene = Scene::new();
    let class = ["--class", "kin", "--weight", "30"];
    let start = |words: &[&str]| {
        let words = [&class[..], words, &["--", "sleep", "60"]].concat();
        let mut job = polite(scene.path(), &words);
        job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let has = |job: &Child, priority: u32| {
        soon(&format!("no priority {priority}"), || {
            (told(scene.path(), job.id())?["priority"] == priority).then_some(())
        });
    };
    let (mut follows, mut fixed) = (start(&[]), start(&["--priority", "7"]));
    has(&follows, 30);
    has(&fixed, 7);
    text(&said(scene.path(), &["class", "set", "kin", "--weight", "250"]));
    has(&follows, 250);
    has(&fixed, 7);
    let shown = text(&said(scene.path(), &["status"]));
    assert!(shown.contains("priority 250") && shown.contains("priority 7"), "{shown}");
    for job in [&mut follows, &mut fixed] {
        job.kill().unwrap();
        job.wait().unwrap();
    }
    text(&said(scene.path(), &["class", "rm", "kin"]));
}

#[test]
fn parameters_are_checked_before_the_command_starts() {
    let scene = Scene::new();
    let refused = |words: &[&str], why: &str| {
        let words = [words, &["--", "echo", "ran"]].concat();
        let output = polite(scene.path(), &words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]));
        assert!(told.contains(why) && told.lines().count() == 1, "{told}");
    };
    refused(&["--tune", "alpha=0.4"], "alpha must be above 0 and below beta");
    refused(&["--tune", "gamma=1"], "there are alpha, beta");
    refused(&["--tune", "hung"], "NAME=NUMBER");
    refused(&["--priority", "0"], "0");
    let words = ["--tune", "alpha=0.2", "--tune", "beta=0.4", "--", "echo", "ran"];
    assert_eq!(text(&polite(scene.path(), &words).output().unwrap()), "ran\n");
    // What the options say counts more than the configuration.
    let config = scene.path().join("config/discnice");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[polite]\nalpha = 0.3\nbeta = 0.45\n").unwrap();
    let configured = |words: &[&str]| {
        let mut command = polite(scene.path(), words);
        command.env("XDG_CONFIG_HOME", scene.path().join("config")).output().unwrap()
    };
    assert_eq!(text(&configured(&["--", "echo", "ran"])), "ran\n");
    let output = configured(&["--tune", "beta=0.2", "--", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(125), "alpha is the configuration's: {output:?}");
}
