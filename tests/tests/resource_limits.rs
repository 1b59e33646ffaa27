//! A command runs under `discnice run` with each resource limit (getrlimit(2)) with which it runs alone, and
//! inherits it as it is.

use std::process::{Output, Stdio};

use discnice_tests::product;

/// Limits with which a shell runs, as prlimit(1) takes them. An address space must hold `discnice` itself.
const LIMITS: &[&str] = &[
    "--stack=16384",
    "--stack=32768",
    "--stack=65536",
    "--stack=131072",
    "--stack=1048576",
    "--stack=unlimited",
    "--nofile=4",
    "--nofile=5",
    "--nofile=6",
    "--nofile=8",
    "--as=16777216",
    "--as=33554432",
    "--data=1048576",
    "--nproc=0",
    "--nproc=1",
    "--fsize=0",
    "--memlock=0",
    "--core=0",
    "--sigpending=0",
    "--msgqueue=0",
];

/// What the command tells of its limits, and of its own end.
const COMMAND: &[&str] = &["/bin/sh", "-c", "ulimit -S -a; ulimit -H -a; exit 7"];

/// By pipes: files would be limited in size.
fn limited(limit: &str, words: &[&str]) -> Output {
    let mut command = product::as_user("prlimit");
    // The environment lies on the stack, too: with a long one 16 KiB are too little for a shell alone.
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command.arg(limit).args(words).stdin(Stdio::null()).output().expect("prlimit")
}

/// Compares each limit with and without these words before the command.
fn compare(options: &[&str]) {
    let program = product::program();
    let mut wrong = Vec::new();
    for limit in LIMITS {
        let alone = limited(limit, COMMAND);
        assert_eq!(alone.status.code(), Some(7), "{limit}: {alone:?}");
        let words: Vec<&str> = [program.to_str().expect("a path"), "run"]
            .iter()
            .chain(options)
            .chain(&["--"])
            .chain(COMMAND)
            .copied()
            .collect();
        // The stack begins at another place each time, which takes more or less of a short one.
        let times = if limit.starts_with("--stack") { 12 } else { 1 };
        for _ in 0..times {
            let under = limited(limit, &words);
            if (under.status, &under.stdout) != (alone.status, &alone.stdout) {
                wrong.push(format!("{limit} {options:?}: {under:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_a_limited_command() {
    compare(&["--disk", "50M"]);
}

#[test]
fn of_a_command_in_the_polite_default() {
    compare(&[]);
}

#[test]
fn of_a_command_with_a_parent_that_sums_up() {
    compare(&["--disk", "50M", "--summary"]);
}

#[test]
fn of_a_command_that_is_regulated_by_its_progress() {
    compare(&["--polite"]);
}
