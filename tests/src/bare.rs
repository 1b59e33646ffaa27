//! Runs of a command that are compared: bare, and under limits.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::class::Class;
use crate::guest::Compiler;
use crate::process::{Outcome, run};
use crate::product;

/// No limit; one that nothing here reaches for long; one that makes everything wait and splits
/// every call of more than 160 KiB.
pub const LIMITS: [&str; 3] = ["unlimited", "50M", "4M"];

/// Estimators that predict, each under one of the limits: what they do to a call does not depend on it.
const PREDICTING: [(&str, &str); 2] = [("4M", "predict"), ("50M", "auto")];

/// A limit, and the estimator if it is not the account.
pub type Limit = (&'static str, Option<&'static str>);

/// What a test prepares in the guest's working folder.
pub type Prepare = fn(&Path);

/// Nothing.
pub fn nothing(_: &Path) {}

/// Working folders for runs that are compared: each run's fresh, and all at the same path, or at one that runs at the same time
/// do not share.
#[derive(Debug)]
pub struct Place(tempfile::TempDir);

impl Default for Place {
    fn default() -> Self {
        Self(product::folder())
    }
}

impl Place {
    /// Runs a command in a folder in which `prepare` made what it needs.
    ///
    /// # Panics
    /// The folder cannot be made.
    pub fn run(&self, command: &mut Command, prepare: Prepare) -> Outcome {
        let work = self.0.path().join("work");
        fs::create_dir(&work).expect("the folder is ours");
        fs::set_permissions(&work, Permissions::from_mode(0o777)).expect("the folder is ours");
        prepare(&work);
        let outcome = run(command.current_dir(&work).env("LC_ALL", "C"));
        fs::remove_dir_all(&work).expect("the folder is ours");
        outcome
    }

    /// Runs a command and leaves this place's path out of what it prints.
    fn run_unplaced(&self, command: &mut Command, prepare: Prepare) -> Outcome {
        let Outcome { output, errors, status, signal } = self.run(command, prepare);
        let path = self.0.path().as_os_str().as_bytes();
        Outcome { output: without(&output, path), errors: without(&errors, path), status, signal }
    }
}

/// Leaves out each occurrence of `part`.
fn without(text: &[u8], part: &[u8]) -> Vec<u8> {
    let (mut kept, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, others)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(part) {
            rest = behind;
        } else {
            kept.push(first);
            rest = others;
        }
    }
    kept
}

/// Runs the command bare and under every limit, and compares; returns how it went bare.
///
/// # Panics
/// It went differently.
pub fn compare(words: &[&str], prepare: Prepare) -> Outcome {
    compare_with(words, prepare, &LIMITS.map(|limit| (limit, None)))
}

/// Runs the command bare, then under all limits at once, as held commands mostly wait, and compares; returns how it went bare.
///
/// # Panics
/// It went differently.
pub fn compare_with(words: &[&str], prepare: Prepare, limits: &[Limit]) -> Outcome {
    let bare = Place::default().run_unplaced(product::as_user(words[0]).args(&words[1..]), prepare);
    let held = |&(limit, estimator): &Limit| {
        let class = estimator
            .map_or_else(|| Class::new(limit), |estimator| Class::estimated(limit, estimator));
        let held = Place::default().run_unplaced(&mut class.command(words), prepare);
        assert_same(&bare, &held, &format!("{words:?} under {limit}, {estimator:?}"));
    };
    thread::scope(|scope| {
        for limit in limits {
            scope.spawn(|| held(limit));
        }
    });
    bare
}

/// Compares, and shows the lines that differ, which says more than two long texts.
///
/// # Panics
/// They differ.
pub fn assert_same(bare: &Outcome, held: &Outcome, what: &str) {
    if bare == held {
        return;
    }
    let (left, right) = (bare.text(), held.text());
    let differing = left
        .lines()
        .zip(right.lines())
        .filter(|(left, right)| left != right)
        .map(|(left, right)| format!("  bare: {left}\n  held: {right}\n"))
        .collect::<String>();
    panic!("{what}:\n{differing}\nbare {bare:?}\n\nheld {held:?}");
}

/// Runs the command bare and under every limit, by account and by prediction, and compares; returns how it went
/// bare.
///
/// # Panics
/// It went differently.
pub fn compare_predicted(words: &[&str], prepare: Prepare) -> Outcome {
    let by_account = LIMITS.map(|limit| (limit, None));
    let predicted = PREDICTING.map(|(limit, estimator)| (limit, Some(estimator)));
    compare_with(words, prepare, &[&by_account[..], &predicted].concat())
}

/// Compiles one guest and compares; returns how it went bare, or `None` without a compiler.
///
/// # Panics
/// It went differently, or does not compile.
pub fn guest(source: &str, arguments: &[&str], prepare: Prepare) -> Option<Outcome> {
    let folder = product::folder();
    let program = Compiler::new(folder.path())?.compile(source);
    let mut words = vec![program.to_str().expect("a path in UTF-8")];
    words.extend(arguments);
    Some(compare_predicted(&words, prepare))
}
