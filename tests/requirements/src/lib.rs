//! What a test says that lacks something, so that no test vanishes without a word.
//!
//! A test that needs a program, a right or a feature of the kernel ends with `skip!` where that is missing. Each
//! such end is told on standard error, past the harness's capture, and appended to the file that `$DISCNICE_SKIPPED`
//! names, from which `make test` counts them in its closing line. With `DISCNICE_REQUIRE=all`, as in CI, a test that
//! lacks something fails.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Variable that makes tests fail that lack something.
const REQUIRE: &str = "DISCNICE_REQUIRE";
/// The file that has a line for each test that did nothing.
const SKIPPED: &str = "DISCNICE_SKIPPED";

/// Their names, for what a test starts and is to have none of them.
pub const VARIABLES: [&str; 2] = [REQUIRE, SKIPPED];

/// Ends the test, saying why it does nothing here: `skip!("no {program}")`.
///
/// In a function that returns something, the value is given first: `skip!(None; "no {program}")`.
#[macro_export]
macro_rules! skip {
    ($value:expr; $($why:tt)*) => {{
        $crate::skipped(::core::module_path!(), ::core::format_args!($($why)*));
        return $value;
    }};
    ($($why:tt)*) => {{
        $crate::skipped(::core::module_path!(), ::core::format_args!($($why)*));
        return;
    }};
}

/// Tells that a test of this module does nothing, or not all, and why, for a test that cannot end by [`skip!`].
///
/// # Panics
/// Nothing may be missing here.
#[track_caller]
pub fn skipped(module: &str, why: fmt::Arguments<'_>) {
    let required = std::env::var_os(REQUIRE).is_some_and(|value| !value.is_empty());
    let (test, list) = (name(module), std::env::var_os(SKIPPED));
    assert!(!required, "{REQUIRE} is set, and {test} lacks what it needs: {why}");
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {why}");
    if let Some(list) = list {
        let listed = note(&test, why, Path::new(&list));
        listed.unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    }
}

/// The test's name; the harness gives it to the thread, unless there is one thread only.
fn name(module: &str) -> String {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main");
    let crate_name = module.split("::").next().unwrap_or(module);
    test.map_or_else(|| module.to_owned(), |test| format!("{crate_name}::{test}"))
}

/// Adds a line, in one write at the end, so that those of tests that run beside each other do not mix.
fn note(test: &str, why: fmt::Arguments<'_>, list: &Path) -> io::Result<()> {
    let why = why.to_string().replace(['\n', '\t'], " ");
    let line = format!("{}\t{test}\n", why.trim_end());
    File::options().append(true).create(true).open(list)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    const LACKING: &str = "DISCNICE_TEST_LACKING";

    /// This program again, with one test that ends by `skip!`.
    fn lacking(set: [(&str, &Path); 2]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::a_test_that_lacks_something_is_listed"]);
        command.env_remove(REQUIRE).env(LACKING, "yes").envs(set).output().unwrap()
    }

    #[test]
    fn a_test_that_lacks_something_is_listed() {
        if std::env::var_os(LACKING).is_some() {
            skip!("no {}", "tool\nat all");
        }
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        let output = lacking([(SKIPPED, &list), (REQUIRE, Path::new(""))]);
        assert!(output.status.success(), "{output:?}");
        let name = "discnice_requirements::tests::a_test_that_lacks_something_is_listed";
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told, format!("SKIPPED {name}: no tool\nat all\n"));
        assert_eq!(std::fs::read_to_string(&list).unwrap(), format!("no tool at all\t{name}\n"));
    }

    #[test]
    fn it_fails_where_nothing_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        let output = lacking([(SKIPPED, &list), (REQUIRE, Path::new("all"))]);
        assert_eq!(output.status.code(), Some(101), "{output:?}");
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.contains("listed lacks what it needs: no tool"), "{told}");
        assert!(!list.exists());
    }

    #[test]
    fn lines_of_tests_beside_each_other_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        std::thread::scope(|scope| {
            for test in ["one", "two", "three"] {
                let list = &list;
                scope.spawn(move || {
                    (0..50).for_each(|_| note(test, format_args!("no x"), list).unwrap());
                });
            }
        });
        let text = std::fs::read_to_string(&list).unwrap();
        for test in ["one", "two", "three"] {
            let line = format!("no x\t{test}");
            assert_eq!(text.lines().filter(|found| *found == line).count(), 50);
        }
        assert_eq!(text.lines().count(), 150);
    }
}
