//! The table is whole: no time that tunes the watcher is defined elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

/// Constants of times outside the table, as `file: line`.
fn strays(folder: &Path) -> Vec<String> {
    let is_time = |line: &&str| {
        let declared = line.split_once("const ").and_then(|(_, rest)| rest.split_once(": "));
        declared.is_some_and(|(name, rest)| {
            !name.contains('(') && (rest.starts_with("Nanos ") || rest.starts_with("Duration "))
        })
    };
    let product = |text: &str| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for path in sources(folder) {
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if path.components().any(|part| part.as_os_str() == "tuning") || is_test {
            continue;
        }
        let text = product(&fs::read_to_string(&path).unwrap());
        found
            .extend(text.lines().filter(is_time).map(|line| format!("{}: {line}", path.display())));
    }
    found
}

#[test]
fn no_time_is_tuned_outside_of_the_table() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = strays(&own.join("src"));
    // The daemon, as long as it is a crate of its own.
    let daemon = own.with_file_name("policyd").join("src");
    if daemon.is_dir() {
        found.extend(strays(&daemon));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_row_says_what_it_is_and_which_decision_is_behind_it() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/adr");
    let names: Vec<String> = fs::read_dir(records)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for group in groups() {
        assert!(!group.about.is_empty() && !group.rows.is_empty(), "{}", group.name);
        for row in group.rows {
            let start = format!("{:04}-", row.adr);
            assert!(names.iter().any(|name| name.starts_with(&start)), "{}", row.name);
            assert!(row.meaning.trim().ends_with('.') && row.value > 0, "{}", row.name);
        }
    }
}

#[test]
fn a_row_has_the_value_of_its_constant() {
    let group = holding::group();
    let row = group.rows.iter().find(|row| row.name == "LONGEST_STOP").unwrap();
    assert_eq!((group.name, row.value, row.unit), ("holding", holding::LONGEST_STOP.0, Unit::Time));
}
