//! valgrind's tools say of a program what they say without us.

use std::process::Command;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

/// Lines of errors that a tool counts; it has reports of its own about libc's streams with some versions.
fn errors(complaint: &str) -> u64 {
    let summary = complaint.lines().rev().find_map(|line| line.split("ERROR SUMMARY: ").nth(1));
    let count = summary.and_then(|rest| rest.split(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no summary: {complaint}"))
}

#[test]
fn no_race_is_reported_that_is_not_the_programs() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip!("no valgrind");
    }
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("sharing.c");
    let guest = [guest.to_str().expect("text"), folder.path().to_str().expect("text")];
    for tool in ["--tool=helgrind", "--tool=drd"] {
        let words = [&["valgrind", tool], &guest[..]].concat();
        let bare = run(product::as_user(words[0]).args(&words[1..])).succeeded();
        for (limit, mechanism) in [("unlimited", "auto"), ("200M", "auto"), ("200M", "preload")] {
            // policyd follows the program under valgrind, so that the library need not be in it; by preload it always is.
            let class = Class::new(limit);
            let held = run(class.run_by(mechanism).args(&words)).succeeded();
            let complaint = held.complaint();
            let (bare, held) = (errors(&bare.complaint()), errors(&complaint));
            assert!(
                held <= bare,
                "{tool}, {limit}, {mechanism}: {bare} errors without us, now {complaint}"
            );
        }
    }
}
