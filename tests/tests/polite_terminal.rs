//! `run --polite --metric terminal`: progress bars are read on the way to the terminal, and the command is none the wiser.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use discnice_tests::attaching::Sleeper;
use discnice_tests::process::{kill_group, run, until};
use discnice_tests::{cold, product, skip};
use serde_json::Value;

/// `discnice run` with the terminal as progress, for a line of a shell.
fn polite(rest: &str) -> String {
    format!("{} run --polite --metric terminal {rest}", product::program().display())
}

/// A line of a shell on a terminal of its own, without input.
fn on_terminal(line: &str) -> Command {
    let mut script = product::as_user("script");
    let pairs = product::discnice(["status"]);
    script.envs(pairs.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.args(["-qec", line, "/dev/null"]).stdin(Stdio::null());
    script
}

/// A process group that ends with this value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(self.0.id());
        let _ = self.0.wait();
    }
}

fn jobs() -> Vec<Value> {
    let status = run(&mut product::discnice(["status", "--json"])).succeeded();
    let status: Value = serde_json::from_slice(&status.output).expect("JSON");
    status["jobs"].as_array().expect("jobs").clone()
}

//= ms-manners/11-progress-bar
#[test]
fn what_rsync_shows_is_its_progress() {
    if run(Command::new("rsync").arg("--version")).status != Some(0) {
        skip!("no rsync");
    }
    let folder = product::folder();
    std::fs::create_dir(folder.path().join("from")).unwrap();
    cold::make(&folder.path().join("from/data"), 20 << 20).unwrap();
    // The phase is which metrics rise: with the bar that rises nothing else need.
    let line =
        polite("--metric cpu --phase moving -- rsync --bwlimit=2000 --info=progress2 -a from/ to/");
    let mut script = on_terminal(&line);
    let script = script.stdout(Stdio::null()).current_dir(folder.path()).process_group(0);
    let _job = Group(script.spawn().expect("it starts"));
    let is_read = |job: &Value| job["name"] == "rsync" && job["phase"].as_str() > Some("1");
    until("the bar is its progress", || jobs().iter().any(is_read));
}

#[test]
fn the_terminal_shows_what_it_would_without() {
    if run(&mut on_terminal("true")).status != Some(0) {
        skip!("no script(1)");
    }
    let inner = r#"sh -c 'printf "\033]9;4;1;50\007 50%%\r\033[31mred\033[0m\n\000\377\n"; tty >/dev/null <&1 && tty; echo er >&2
        seq 20000; stty size <&2; exit 7'"#;
    let plain = run(&mut on_terminal(&format!("stty cols 91 rows 17; {inner}")));
    let line = format!("stty cols 91 rows 17; {}", polite(&format!("-- {inner}")));
    // Where it may be written, so that nothing is said of that.
    let state = product::folder();
    let held = run(on_terminal(&line).env("XDG_STATE_HOME", state.path()));
    assert_eq!((held.status, plain.status), (Some(7), Some(7)), "{held:?}");
    assert!(plain.output.len() > 100_000, "{plain:?}");
    assert!(held.output == plain.output, "{}", held.text().chars().take(300).collect::<String>());
}

#[test]
fn sizes_stops_and_signals_reach_the_command() {
    if run(&mut on_terminal("true")).status != Some(0) {
        skip!("no script(1)");
    }
    let waits = polite(
        r#"-- sh -c 'trap "stty size <&1" WINCH; for i in 1 2 3 4 5 6; do sleep 0.2; done'"#,
    );
    let shown = run(&mut on_terminal(&format!("(sleep 0.5; stty -F /dev/tty cols 123) & {waits}")));
    assert!(shown.succeeded().text().contains(" 123"), "the new size");

    // A shell with job control stops, continues and ends it as any other job.
    let counts = polite("-- sh -c 'while :; do echo counted; sleep 0.1; done'");
    let script = format!(
        "set -m; {counts} & sleep 0.6; kill -TSTP %1; sleep 0.3; jobs; echo stopped; sleep 0.4; echo until; \
         kill -CONT %1; sleep 0.4; kill -TERM %1; wait %1; echo ended \\$?"
    );
    let shown = run(&mut on_terminal(&format!("bash -c \"{script}\""))).text();
    let (before, after) = shown.split_once("stopped\r\n").expect("both parts");
    assert!(before.contains("Stopped") && before.contains("counted"), "{shown}");
    let (still, after) = after.split_once("until\r\n").expect("both parts");
    assert_eq!(still, "", "it stands: {shown}");
    assert!(after.contains("counted") && after.contains("ended 143"), "{shown}");
}

#[test]
fn without_a_terminal_it_is_refused_in_one_line() {
    let refused = |words: &[&str], why: &str| {
        let outcome = run(&mut product::discnice(words));
        assert_eq!(outcome.status, Some(125), "{outcome:?}");
        let told = outcome.complaint();
        assert!(told.contains(why) && told.trim_end().lines().count() == 1, "{told}");
    };
    refused(&["run", "--polite", "--metric", "terminal", "ls"], "--metric progress:PATH");
    let sleeper = Sleeper::ordinary();
    let words = ["attach", "--polite", "--metric", "terminal", &sleeper.id()];
    refused(&words, "start it by `discnice run`");
}
