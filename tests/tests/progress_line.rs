//! `run --progress`: one line on a terminal while a command runs, and nothing anywhere else.

use std::process::{Command, Stdio};

use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

/// Goes to the beginning of the line, and removes what stands there.
const ERASE: &str = "\r\x1b[K";
/// A second and a half of writing at 4 MiB/s.
const WRITER: &str = "dd if=/dev/zero of=made bs=64k count=96 conv=fsync status=none";

/// What a terminal of 60 columns shows of a command below `run --progress`.
fn shown(options: &str, command: &str) -> Option<String> {
    let folder = product::folder();
    cold::make(&folder.path().join("read"), 6 << 20).unwrap();
    let program = product::program();
    let line = format!("stty cols 60; {} run --progress {options} -- {command}", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(folder.path());
    let output = script.stdin(Stdio::null()).output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The lines that took each other's place: each ends at the beginning of its line, and the last one is gone.
fn lines(shown: &str) -> Vec<&str> {
    let parts: Vec<&str> = shown.split(ERASE).skip(1).collect();
    let (last, lines) = parts.split_last().expect("a line");
    assert_eq!(last.trim(), "", "what is left: {shown:?}");
    for line in lines {
        let text = line.strip_suffix('\r').unwrap_or_else(|| panic!("{shown:?}"));
        assert!((1..60).contains(&text.chars().count()), "{text:?}");
    }
    lines.to_vec()
}

#[test]
fn each_mechanism_shows_rate_limit_and_waits_in_one_line() {
    for mechanism in ["preload", "freeze", "seccomp"] {
        let options = format!("--disk 4M --mechanism {mechanism}");
        let Some(shown) = shown(&options, WRITER) else { skip!("no script(1)") };
        let lines = lines(&shown);
        assert!(lines.len() >= 2, "twice a second: {shown:?}");
        let last = lines.last().unwrap();
        assert!(last.contains(" of 4 MiB/s, ") && last.contains("iB moved"), "{shown:?}");
        assert!(lines.iter().any(|line| line.contains("held ")), "{mechanism}: {shown:?}");
    }
}

#[test]
fn how_far_it_is_in_its_file_is_shown() {
    let reader = "dd if=read of=/dev/null bs=64k status=none";
    let Some(shown) = shown("--disk 3M", reader) else { skip!("no script(1)") };
    let lines = lines(&shown);
    let percents: Vec<u32> = lines
        .iter()
        .filter_map(|line| line.split_once(" %")?.0.rsplit(' ').next()?.parse().ok())
        .collect();
    assert!(percents.len() >= 2 && percents.is_sorted(), "{shown:?}");
    assert!(percents.iter().all(|part| *part <= 100) && percents[0] < 100, "{shown:?}");
    assert!(lines.iter().any(|line| line.contains(" left")), "{shown:?}");
}

#[test]
fn nothing_is_shown_where_there_is_no_terminal() {
    let folder = product::folder();
    let words = ["run", "--progress", "--disk", "9M", "--", "sh", "-c", WRITER];
    let outcome = run(product::discnice(words).current_dir(folder.path()));
    assert_eq!((outcome.status, outcome.complaint().as_str()), (Some(0), ""), "{outcome:?}");
    assert!(outcome.output.is_empty(), "{outcome:?}");
}
