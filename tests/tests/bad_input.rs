//! Bad input gets one line that names what is wrong and an exit status that tells whether the error
//! is ours or the command's, and starts nothing.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use discnice_tests::process::{Outcome, run};
use discnice_tests::product;

/// Our own error, not executable, not found: as env(1).
const OURS: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The options that take a rate.
const RATES: [&str; 6] =
    ["--disk", "--disk-read", "--disk-write", "--net", "--net-up", "--net-down"];

/// One line, from us, with this status.
fn assert_refused(what: &[OsString], outcome: &Outcome, status: i32, names: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(status), "{what:?}: {outcome:?}");
    assert_eq!(outcome.text(), "", "{what:?}: nothing on standard output");
    assert_eq!(complaint.lines().count(), 1, "{what:?}: one line: {complaint}");
    assert!(complaint.starts_with("discnice: "), "{what:?}: {complaint}");
    assert!(complaint.contains(names), "{what:?} must name {names:?}: {complaint}");
    assert!(
        !complaint.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')),
        "{what:?}: {complaint:?}"
    );
}

/// One at a time, so that a class that is left behind is that command's.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `discnice` with these arguments in a folder in which `touch started` would show.
fn refuse(arguments: &[&OsStr], status: i32, names: &str) {
    let words: Vec<OsString> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let folder = product::folder();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = segments();
    // Without folders that may not be searched, for which exec has another answer.
    let mut command = product::discnice(&words);
    let outcome = run(command.current_dir(folder.path()).env("PATH", "/usr/bin:/bin"));
    assert_refused(&words, &outcome, status, names);
    assert!(!folder.path().join("started").exists(), "{words:?} started something");
    let ours = |list: &[String]| list.iter().filter(|name| name.contains("bad-input")).count();
    assert_eq!(ours(&before), ours(&segments()), "{words:?} left a class behind");
}

/// The names of all classes.
fn segments() -> Vec<String> {
    let listed = run(&mut product::discnice(["class", "list", "--json"])).succeeded();
    let classes: serde_json::Value = serde_json::from_slice(&listed.output).expect("JSON");
    let name = |class: &serde_json::Value| class["name"].as_str().unwrap_or_default().to_owned();
    classes.as_array().expect("an array").iter().map(name).collect()
}

fn refuse_text(arguments: &[&str], status: i32, names: &str) {
    let words: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    refuse(&words, status, names);
}

#[test]
fn rates_that_are_none() {
    for rate in [
        "0",
        "-5M",
        "5Q",
        "1e400",
        "5 M",
        "M",
        "5.M",
        ".5M",
        "5M/h",
        "0.1B",
        "nan",
        "inf",
        "99999999999T",
        "5M5",
        "+5M",
        "0x10",
        "5\u{661}M",
    ] {
        for option in RATES {
            refuse_text(&["run", option, rate, "--", "touch", "started"], OURS, rate);
        }
        refuse_text(&["class", "set", "bad-input", "--disk", rate], OURS, rate);
    }
    for arguments in [["--disk", ""], ["--disk-read", ""]] {
        refuse_text(
            &["run", arguments[0], arguments[1], "--", "touch", "started"],
            OURS,
            arguments[0],
        );
    }
    for size in ["0", "-64M", "64Q", "64 M", "", "lots", "99999999999T", "64M/s"] {
        for option in ["--memory-low", "--memory-high"] {
            refuse_text(&["run", option, size, "--", "touch", "started"], OURS, option);
        }
    }
    refuse_text(&["run", "--memory-low", "unlimited", "--", "touch", "started"], OURS, "unlimited");
    for count in ["0", "-1", "1.5", "1k", "", "many", "99999999999999999999"] {
        for option in ["--disk-iops", "--meta-ops"] {
            refuse_text(&["run", option, count, "--", "touch", "started"], OURS, option);
        }
    }
    let not_text = OsString::from_vec(vec![b'5', 0xff]);
    let words = ["run", "--disk"].map(OsStr::new);
    let command = ["--", "touch", "started"].map(OsStr::new);
    refuse(&[&words[..], &[&not_text], &command].concat(), OURS, "");
}

#[test]
fn limits_that_contradict_each_other() {
    let memory = ["--memory-low", "2G", "--memory-high", "1G"];
    let run = [&["run"][..], &memory, &["--", "touch", "started"]].concat();
    refuse_text(&run, OURS, "--memory-low 2 GiB is more than --memory-high 1 GiB");
    refuse_text(&[&["class", "set", "bad-input"], &memory[..]].concat(), OURS, "--memory-high");
    refuse_text(&["run", "--disk", "5M", "--disk-read", "10M", "--", "touch", "started"], OURS, "");
    refuse_text(&["class", "set", "bad-input", "--disk", "5M", "--disk-write", "6M"], OURS, "");
    let net = ["run", "--net", "5M", "--net-up", "10M", "--", "touch", "started"];
    refuse_text(&net, OURS, "lower --net-up or raise --net");
    refuse_text(
        &["class", "set", "bad-input", "--net", "5M", "--net-down", "6M"],
        OURS,
        "--net-down",
    );
    refuse_text(&["class", "set", "bad-input", "--net-loopback=maybe"], OURS, "yes or no");
    refuse_text(&["run", "--when", "idle", "--", "touch", "started"], OURS, "always or busy");
    for weight in ["0", "-1", "10001", "heavy", "1.5"] {
        refuse_text(&["class", "set", "bad-input", "--weight", weight], OURS, "1 to 10000");
    }
    refuse_text(&["run", "--disk", "5M", "--disk", "6M", "--", "touch", "started"], OURS, "--disk");
}

#[test]
fn commands_that_are_none() {
    let folder = product::folder();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\ntouch started\n").expect("a file");
    fs::set_permissions(&plain, Permissions::from_mode(0o644)).expect("our file");
    let broken = folder.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").expect("a file");
    fs::set_permissions(&broken, Permissions::from_mode(0o755)).expect("our file");
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    for (command, status) in [
        ("/no/such/program", NOT_FOUND),
        ("no-such-program", NOT_FOUND),
        ("", NOT_FOUND),
        (&text(folder.path()), NOT_EXECUTABLE),
        ("/", NOT_EXECUTABLE),
        (&text(&plain), NOT_EXECUTABLE),
        (&text(&broken), NOT_FOUND),
        (&format!("{}/below", text(&plain)), NOT_EXECUTABLE),
        (&"x".repeat(5000), NOT_EXECUTABLE),
    ] {
        refuse_text(
            &["run", "--class", "bad-input", "--disk", "5M", "--", command],
            status,
            command,
        );
        refuse_text(&["run", "--disk", "5M", "--", command, "with", "arguments"], status, command);
    }
    refuse_text(&["run", "--disk", "5M"], OURS, "command");
    refuse_text(&["run", "--disk", "5M", "--"], OURS, "command");
}

#[test]
fn options_of_the_command_are_its_own() {
    for words in [
        &["run", "--disk", "5M", "echo", "--class", "-h", "a"][..],
        &["run", "--disk", "5M", "--", "echo", "--class", "-h", "a"],
        &["--disk", "5M", "echo", "--class", "-h", "a"],
        &["echo", "--class", "-h", "a"],
        &["--", "echo", "--class", "-h", "a"],
    ] {
        let ran = run(&mut product::discnice(words)).succeeded();
        assert_eq!(ran.text(), "--class -h a\n", "{words:?}");
    }
}

#[test]
fn what_is_mistyped_is_told_with_what_was_meant() {
    for (words, meant) in [
        (&["stauts"][..], "did you mean status?"),
        (&["clas", "list"], "did you mean class?"),
        (&["atach", "1"], "did you mean attach?"),
        (&["detatch", "1"], "did you mean detach?"),
        (&["docter"], "did you mean doctor?"),
        (&["calibarte"], "did you mean calibrate?"),
        (&["polcyd"], "did you mean policyd?"),
        (&["refersh", "."], "did you mean refresh?"),
        (&["metrisc"], "did you mean metrics?"),
        (&["ordre", "."], "did you mean order?"),
        (&["class", "lsit"], "did you mean list?"),
        (&["class", "shwo", "x"], "did you mean show?"),
        (&["status", "--jsno"], "did you mean --json?"),
        (&["--dsik", "5M", "touch", "started"], "did you mean --disk?"),
        (&["run", "--dsik", "5M", "touch", "started"], "did you mean --disk?"),
        (&["run", "--disk-raed", "5M", "touch", "started"], "did you mean --disk-read?"),
        (&["run", "--netup", "5M", "touch", "started"], "did you mean --net-up?"),
        (&["run", "--sumary", "touch", "started"], "did you mean --summary?"),
        (&["run", "--clas", "x", "touch", "started"], "did you mean --class?"),
        (&["run", "--mechanism", "frezee", "touch", "started"], "did you mean freeze?"),
        (&["run", "--disk", "5", "touch", "started"], "5 what? 5M is 5 MiB/s"),
    ] {
        refuse_text(words, OURS, meant);
    }
    run(&mut product::discnice(["class", "set", "mistyped-nightly", "--disk", "5M"])).succeeded();
    let shown = run(&mut product::discnice(["class", "show", "mistyped-nihgtly"]));
    run(&mut product::discnice(["class", "rm", "mistyped-nightly"])).succeeded();
    assert_eq!(
        shown.complaint(),
        "discnice: no class mistyped-nihgtly; did you mean mistyped-nightly?\n"
    );
}

/// Figures of what did not run would say that it did.
#[test]
fn of_a_command_that_cannot_be_started_only_that_is_told() {
    refuse_text(&["run", "--summary", "--", "no-such-command"], NOT_FOUND, "no-such-command");
    refuse_text(&["run", "--summary", "--", "/etc/passwd"], NOT_EXECUTABLE, "/etc/passwd");
    let words = ["run", "--summary", "--", "sh", "-c", "exit 127"];
    let told = run(&mut product::discnice(words));
    assert_eq!(told.status, Some(NOT_FOUND));
    assert!(told.complaint().contains(", wrote "), "{told:?}");
}

#[test]
fn an_empty_name_is_not_explained() {
    refuse_text(&["explain", ""], OURS, "the name is empty");
    refuse_text(&["explain", "--json", ""], OURS, "the name is empty");
}

#[test]
fn class_names_that_are_none() {
    let long = "x".repeat(300);
    for name in ["", ".", "..", "a/b", "/etc", "../bad", "tab\there", "\u{1b}[31m", "@sh-1", &long]
    {
        refuse_text(
            &["run", "--class", name, "--disk", "5M", "--", "touch", "started"],
            OURS,
            "class",
        );
        refuse_text(&["class", "set", name, "--disk", "5M"], OURS, "class");
        refuse_text(&["class", "show", name], OURS, "class");
        refuse_text(&["class", "rm", name], OURS, "class");
    }
    let foreign = OsString::from_vec(b"bad-input\xff\xfe".to_vec());
    let before = ["run", "--class"].map(OsStr::new);
    let after = ["--disk", "5M", "--", "touch", "started"].map(OsStr::new);
    refuse(&[&before[..], &[&foreign], &after].concat(), OURS, "");
    refuse(&[OsStr::new("class"), OsStr::new("rm"), OsStr::from_bytes(b"\xff")], OURS, "");
}

#[test]
fn values_with_newlines() {
    let command = ["--", "touch", "started"];
    refuse_text(&[&["run", "--disk", "five\nlines"][..], &command].concat(), OURS, "lines");
    refuse_text(&[&["run", "--disk", "five\nlines"][..], &command].concat(), OURS, "give a number");
    let named = ["run", "--class", "new\nline", "--disk", "5M"];
    refuse_text(&[&named[..], &command].concat(), OURS, "line");
    refuse_text(&[&named[..], &command].concat(), OURS, "control");
}

#[test]
fn classes_that_are_not_there() {
    for action in ["show", "rm"] {
        refuse_text(&["class", action, "bad-input-none"], OURS, "bad-input-none");
    }
    refuse_text(&["class", "set", "bad-input"], OURS, "bad-input");
    refuse_text(&["class", "set", "bad-input", "--disk"], OURS, "--disk");
    refuse_text(&["class"], OURS, "");
    refuse_text(&["no-such-subcommand"], NOT_FOUND, "no-such-subcommand");
    refuse_text(&["run", "--no-such-option", "--", "touch", "started"], OURS, "--no-such-option");
    refuse_text(&["doctor", "no-such-program"], OURS, "no-such-program");
}

#[test]
fn names_at_the_border_of_what_is_allowed() {
    let longest = "y".repeat(255);
    for name in [&longest, "two words", "näme", "a.b", "semi;colon'\"$"] {
        let name = format!("{}{}", name, if name.len() < 255 { " bad-name-test" } else { "" });
        let mut command = product::discnice(["run", "--disk", "5M", "--class"]);
        let started = run(command.arg(&name).args(["--", "echo", "started"])).succeeded();
        assert_eq!(started.text(), "started\n", "{name}");
        assert!(segments().contains(&name), "{name}");
        run(&mut product::discnice(["class", "rm", &name])).succeeded();
        // Another `discnice` that looks at it at this moment keeps it a little longer.
        let gone = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !segments().contains(&name)
        });
        assert!(gone, "{name}");
    }
}

#[test]
fn help_is_for_all_that_ask() {
    let short = run(&mut product::discnice(["-h"])).succeeded();
    let bare = product::discnice([""; 0]).output().expect("a process");
    assert_eq!((bare.status.code(), &bare.stdout), (Some(0), &short.output), "no arguments");
    let long = run(&mut product::discnice(["run", "--help"])).succeeded();
    assert_eq!(run(&mut product::discnice(["help", "run"])).succeeded().text(), long.text());
    // One screen.
    let lines = run(&mut product::discnice(["run", "-h"])).succeeded().text().lines().count();
    assert!(lines <= 50, "{lines} lines");
}

#[test]
fn a_closed_or_full_output_is_no_crash() {
    for script in ["\"$@\" >&-", "\"$@\" >/dev/full", "\"$@\" | true"] {
        for words in [&["--help"][..], &["status"], &["class", "list"], &["status", "--json"]] {
            let mut command = product::as_user("sh");
            command.args(["-c", script, "sh"]).arg(product::program()).args(words);
            let ended = run(&mut command);
            let complaint = ended.complaint();
            assert!(!complaint.contains("panicked"), "{script} {words:?}: {complaint}");
            assert!(ended.signal.is_none(), "{script} {words:?}: {ended:?}");
        }
    }
}
