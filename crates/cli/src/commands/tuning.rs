//! `discnice doctor --tuning`: the amounts and times by which processes are watched from outside.

use discnice_units::{Bytes, Nanos, Rate};
use discnice_watcher::daemon::tuning::{Group, Row, Unit, groups};
use serde::Serialize;

use crate::output::{self, Lines};

/// One constant, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Constant {
    group: &'static str,
    name: &'static str,
    value: u64,
    /// What `value` counts: one part in so many for `part`.
    unit: &'static str,
    meaning: String,
    adr: u32,
}

/// Prints all of them: a table with a heading for each concept, or JSON.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(json: bool) -> anyhow::Result<()> {
    let groups = groups();
    if json {
        let every: Vec<Constant> = groups.iter().flat_map(constants).collect();
        output::json(&serde_json::to_string_pretty(&every)?)?;
        return Ok(());
    }
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let name_width = rows().map(|row| row.name.len()).max().unwrap_or(0);
    let value_width = rows().map(|row| text(row).len()).max().unwrap_or(0);
    let mut lines = Lines::default();
    for group in &groups {
        if group.name != groups[0].name {
            lines.push(format_args!(""));
        }
        lines.push(format_args!("{}: {}", group.name, group.about));
        for row in &group.rows {
            let (value, meaning) = (text(row), meaning(row));
            lines.push(format_args!(
                "  {:<name_width$}  {value:>value_width$}  ADR {:>2}  {meaning}",
                row.name, row.adr
            ));
        }
    }
    lines.say()?;
    Ok(())
}

fn constants(group: &Group) -> impl Iterator<Item = Constant> {
    let constant = |row: &Row| Constant {
        group: group.name,
        name: row.name,
        value: row.value,
        unit: unit(row.unit),
        meaning: meaning(row),
        adr: row.adr,
    };
    group.rows.iter().map(constant)
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "ns",
        Unit::Bytes => "bytes",
        Unit::Rate => "bytes/s",
        Unit::Part => "part",
        Unit::Count => "count",
    }
}

/// The value as people read it.
fn text(row: &Row) -> String {
    match row.unit {
        Unit::Time => Nanos(row.value).to_string(),
        Unit::Bytes => Bytes::new(row.value).to_string(),
        Unit::Rate => Rate::per_second(row.value).to_string(),
        Unit::Part => format!("1/{}", row.value),
        Unit::Count => row.value.to_string(),
    }
}

/// The doc comment of the constant, as one line.
fn meaning(row: &Row) -> String {
    row.meaning.split_whitespace().collect::<Vec<_>>().join(" ")
}
