//! Runs of a command that are compared: bare, and under limits.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::class::Class;
use crate::guest::Compiler;
use crate::process::{Outcome, run};
use crate::product;

/// No limit; one that nothing here reaches for long; one that makes everything wait and splits
/// every call of more than 80 KiB.
pub const LIMITS: [&str; 3] = ["unlimited", "50M", "2M"];

/// Estimators that predict, each under one of the limits: what they do to a call does not depend on it.
const PREDICTING: [(&str, &str); 2] = [("2M", "predict"), ("50M", "auto")];

/// What a test prepares in the guest's working folder.
pub type Prepare = fn(&Path);

/// Nothing.
pub fn nothing(_: &Path) {}

/// Working folders for runs that are compared: all at the same path, each run's fresh.
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
}

/// Runs the command bare and under every limit, and compares; returns how it went bare.
///
/// # Panics
/// It went differently.
pub fn compare(words: &[&str], prepare: Prepare) -> Outcome {
    let place = Place::default();
    let bare = place.run(product::as_user(words[0]).args(&words[1..]), prepare);
    for limit in LIMITS {
        let class = Class::new(limit);
        let held = place.run(&mut class.command(words), prepare);
        assert_same(&bare, &held, &format!("{words:?} under {limit}"));
    }
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
    let bare = compare(words, prepare);
    let place = Place::default();
    // The folder's name may show in what is printed.
    let bare_here = place.run(product::as_user(words[0]).args(&words[1..]), prepare);
    for (limit, estimator) in PREDICTING {
        let class = Class::estimated(limit, estimator);
        let held = place.run(&mut class.command(words), prepare);
        assert_same(&bare_here, &held, &format!("{words:?} under {limit}, {estimator}"));
    }
    bare
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
