//! `discnice status --why`: how many calls went on for which reason.

use std::process::ExitCode;

use discnice_escape::Foreign;
use discnice_ledger::passed::Decider;
use discnice_ledger::trace::Why;
use discnice_units::Bytes;
use serde::Serialize;

use super::status_table::width_of_names;
use super::trace::words;
use crate::classes::{self, MappedClass};
use crate::output::{self, Lines, say};

/// One row. Counts are since the class was made.
#[derive(Debug, Serialize)]
struct Row {
    class: String,
    /// `library`, `filter` or `watcher`: what decided.
    by: &'static str,
    /// The reason, as in `discnice trace --json`.
    why: &'static str,
    /// Calls; of the watcher, looks at an account that had moved.
    calls: u64,
    /// Bytes that they moved, or asked for where what they moved is not seen.
    bytes: u64,
    #[serde(skip)]
    words: &'static str,
}

/// Prints the counts of one class, or of all.
pub fn run(class: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let classes = match class {
        None => classes::all()?,
        Some(name) => vec![classes::known(name)?],
    };
    let rows: Vec<Row> = classes.iter().flat_map(rows).collect();
    if json {
        output::json(&serde_json::to_string_pretty(&rows)?)?;
    } else if rows.is_empty() {
        say!("No call has been counted yet.")?;
    } else {
        table(&rows).say()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what was counted in a class: of each that decides, the most frequent reasons first.
fn rows(found: &MappedClass) -> impl Iterator<Item = Row> {
    let name = found.name();
    Decider::ALL.into_iter().flat_map(move |by| {
        let row = |why| {
            let (count, (key, words)) = (found.class.passed().count(by, why), words(why));
            let (calls, bytes) = (count.calls, count.bytes);
            Row { class: name.clone(), by: title(by), why: key, calls, bytes, words }
        };
        let mut rows: Vec<Row> = Why::ALL.into_iter().map(row).collect();
        rows.retain(|row| row.calls > 0 || row.bytes > 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
        rows
    })
}

const fn title(by: Decider) -> &'static str {
    match by {
        Decider::Library => "library",
        Decider::Filter => "filter",
        Decider::Watcher => "watcher",
    }
}

fn table(rows: &[Row]) -> Lines {
    let mut lines = Lines::default();
    let names: Vec<String> = rows.iter().map(|row| Foreign::text(&row.class).to_string()).collect();
    let named = width_of_names(names.iter());
    lines.push(format_args!(
        "{:<named$} {:<7} {:>12} {:>11}  {}",
        "CLASS", "BY", "CALLS", "BYTES", "WHY"
    ));
    for (row, name) in rows.iter().zip(&names) {
        lines.push(format_args!(
            "{:<named$} {:<7} {:>12} {:>11}  {}: {}",
            Foreign::text(name),
            row.by,
            row.calls,
            Bytes::new(row.bytes).to_string(),
            row.why,
            row.words,
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_beside_long_names() {
        let row = |class: &str| Row {
            class: class.into(),
            by: "library",
            why: "free",
            calls: 1,
            bytes: 4096,
            words: "",
        };
        let lines = table(&[row("nightly"), row("containers-of-the-build-farm-42")]);
        let text = lines.text();
        let place = |line: &str| line.find("library").or_else(|| line.find("BY")).unwrap();
        let places: Vec<usize> = text.lines().map(place).collect();
        assert_eq!(places, [32; 3], "{text}");
    }
}
