//! Classes and their members as a table.

use discnice_escape::Foreign;
use discnice_ledger::policy::Resource;
use discnice_ledger::policy::memory::Bounds;
use discnice_units::{Bytes, Rate};
use unicode_width::UnicodeWidthStr;

use super::class_report::ClassReport;
use super::member_report::MemberReport;
use crate::fleet::Share;
use crate::output::Lines;
use crate::used_up;

/// Columns of limits and of classes' names: at least, and at most for longer texts that stand among shorter ones.
const LIMITS: (usize, usize) = (13, 44);
const NAMES: (usize, usize) = (24, 60);

/// The width of a column that has all these texts, but for those that are too long.
fn width<'a>(texts: impl Iterator<Item = &'a String>, (least, most): (usize, usize)) -> usize {
    let lengths = texts.map(|text| text.width()).filter(|length| *length <= most);
    lengths.max().unwrap_or(0).max(least)
}

/// The width of a column of classes' names.
pub(super) fn width_of_names<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    width(names, NAMES)
}

pub fn table(reports: &[ClassReport], members: bool) -> Lines {
    let mut lines = Lines::default();
    let every: Vec<String> = reports.iter().map(limits).collect();
    let wide = width(every.iter(), LIMITS);
    let titles: Vec<String> =
        reports.iter().map(|report| Foreign::text(&report.title()).to_string()).collect();
    let named = width_of_names(titles.iter());
    lines.push(format_args!(
        "{:<named$} {:>wide$} {:>11} {:>11} {:>11} {:>10} {:>9} {:>7}  {}",
        "CLASS", "LIMIT", "READING", "WRITING", "NETWORK", "MOVED", "WAITED", "MEMBERS", "NOW"
    ));
    for ((report, limits), title) in reports.iter().zip(every).zip(titles) {
        let rate = |resources: &[Resource]| {
            let sum = resources.iter().map(|one| report.rate(*one)).sum();
            Rate::per_second(sum).to_string()
        };
        lines.push(format_args!(
            "{:<named$} {limits:>wide$} {:>11} {:>11} {:>11} {:>10} {:>8.1}s {:>7}  {}",
            Foreign::text(&title),
            rate(&[Resource::Read]),
            rate(&[Resource::Write]),
            rate(&[Resource::NetUp, Resource::NetDown]),
            Bytes::new(report.read + report.written).to_string(),
            report.waited_seconds,
            report.members.len(),
            report.now(),
        ));
        if let Some(told) = report.fleet.as_ref().and_then(Share::told) {
            lines.push(format_args!("  {told}; see `discnice fleet status`"));
        }
        if let Some(parent) = &report.child_of {
            let parent = Foreign::text(parent);
            lines.push(format_args!("  a child of class {parent}, with these limits for itself"));
        }
        for member in report.members.iter().filter(|_| members) {
            lines.push(format_args!("{}", member_line(member)));
        }
    }
    lines
}

fn member_line(member: &MemberReport) -> String {
    let what = match (member.not_held(), member.why) {
        (Some(why), _) => not_limited(&why, member.seen),
        (None, Some(why)) => format!("{}: {why}", member.mechanism),
        (None, None) => String::new(),
    };
    format!(
        "  {:>8} {:<16} {:>13} read {:>13} written {:>8.1}s waited  {what}",
        member.process,
        Foreign::text(&member.name),
        Bytes::new(member.read).to_string(),
        Bytes::new(member.written).to_string(),
        member.waited_seconds + member.frozen_seconds,
    )
}

fn not_limited(why: &str, moved: Option<u64>) -> String {
    let moved = moved.map_or_else(String::new, |bytes| format!("; it moved {}", Bytes::new(bytes)));
    format!("NOT LIMITED: {why}{moved}")
}

/// All thresholds of a class in one column, each with a mark of what it is about.
fn limits(report: &ClassReport) -> String {
    let memory = report.memory_low.zip(report.memory_high);
    let memory = memory.map(|(low, high)| format!("memory {}", Bounds { low, high }));
    // One that answers, or is not asked yet, is what was asked for.
    let policy = report.policy_program.filter(|how| !["answers", "unasked"].contains(how));
    let shown: Vec<String> = Resource::ALL
        .into_iter()
        .filter_map(|one| Some(threshold(one, report.limit(one)?)))
        .chain(memory.filter(|_| report.memory_given))
        .chain(in_all(report))
        .chain(policy.map(|how| format!("policy {how}")))
        .chain(report.at_least.map(|least| format!("at least {}", Rate::per_second(least))))
        .chain(report.fleet.as_ref().map(|share| format!("fleet {}", share.rate())))
        .collect();
    let state = match (report.when, report.throttled) {
        _ if report.paused => " (paused)",
        ("busy", true) => " (others are busy)",
        ("busy", false) => " (when others are busy)",
        _ => "",
    };
    let each = if report.per_child { " each child" } else { "" };
    let shown = if shown.is_empty() { "unlimited".into() } else { shown.join(", ") };
    shown + each + state
}

/// What the class may move in all, and how much of it it has moved.
fn in_all(report: &ClassReport) -> Option<String> {
    let used = Bytes::new(report.disk_total_used?);
    used_up::state(report.disk_total.map(Bytes::new), used)
}

fn threshold(resource: Resource, units: u64) -> String {
    let rate = Rate::per_second(units);
    match resource {
        Resource::Total => rate.to_string(),
        Resource::Read => format!("r {rate}"),
        Resource::Write => format!("w {rate}"),
        Resource::Operations => format!("{units} ops/s"),
        Resource::Metadata => format!("{units} meta-ops/s"),
        Resource::Net => format!("net {rate}"),
        Resource::NetUp => format!("up {rate}"),
        Resource::NetDown => format!("down {rate}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_what_fits_into_it() {
        let wide = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            width(texts.iter(), (3, 6))
        };
        assert_eq!(wide(&[]), 3);
        assert_eq!(wide(&["ä", "ääää"]), 4);
        assert_eq!(wide(&["名前", "e\u{301}"]), 4, "in columns of a terminal");
        assert_eq!(
            wide(&["four", "much longer"]),
            4,
            "one that is too long moves its own row alone"
        );
    }
}
