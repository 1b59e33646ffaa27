//! A report for people: a page for a browser, or the plots alone.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use discnice_ledger::policy::Resource;
use discnice_plot::html::document;
use discnice_plot::svg::{draw, escape, stack};
use discnice_units::{Bytes, Rate};

use super::plots;
use super::record::JobRecord;
use super::waited::Part;
use crate::binding::Binding;
use crate::explanation;

/// A page that needs nothing else.
pub fn html(record: &JobRecord) -> String {
    let mut body = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        body,
        "<p><code>{}</code></p>\n<p>Class {}, started {}, {}.</p>",
        escape(&record.command.join(" ")),
        escape(&record.class),
        started(record),
        end(record)
    );
    let verdict = record.verdict.as_deref().unwrap_or("waited for nothing");
    let _ = writeln!(body, "<p><strong>It {}.</strong></p>", escape(verdict));
    if record.per_child {
        body.push_str("<p>Each child had these limits for itself; the figures are sums over all of them.</p>\n");
    }
    body.push_str("<table>\n");
    for (name, number) in totals(record) {
        let _ =
            writeln!(body, "<tr><td>{}</td><td class=\"n\">{}</td></tr>", name, escape(&number));
    }
    body.push_str("</table>\n");
    for one in &record.not_limited {
        let moved = one.bytes.map(|bytes| format!("; it moved {}", Bytes::new(bytes)));
        let (name, reason) = (escape(&one.name), escape(&one.reason));
        let moved = moved.unwrap_or_default();
        let _ = writeln!(body, "<p>Not limited: {name} ({}): {reason}{moved}.</p>", one.process);
    }
    for plot in plots::all(record) {
        body.push_str(&draw(&plot));
    }
    let program = record.command.first().map_or("", |name| name.rsplit('/').next().unwrap_or(name));
    document(&format!("discnice run {program}"), &body)
}

/// All plots, one below the other.
pub fn svg(record: &JobRecord) -> String {
    stack(&plots::all(record))
}

fn started(record: &JobRecord) -> String {
    let moment = UNIX_EPOCH + Duration::from_secs(record.started);
    humantime::format_rfc3339_seconds(moment).to_string()
}

fn end(record: &JobRecord) -> String {
    match (record.end.signal, record.end.status) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, status) => format!("exit status {}", status.unwrap_or(0)),
    }
}

/// The rows of Rate Windows, table 1, as far as they were measured.
fn totals(record: &JobRecord) -> Vec<(&'static str, String)> {
    let disk = &record.disk;
    let bytes = |count: u64| Bytes::new(count).to_string();
    let mut rows = vec![
        ("Total disk I/O", bytes(disk.read_bytes + disk.written_bytes)),
        ("of this read", bytes(disk.read_bytes)),
        ("of this written", bytes(disk.written_bytes)),
    ];
    rows.extend(disk.predicted_bytes.map(|count| ("Predicted disk I/O", bytes(count))));
    rows.extend([
        ("Total disk operations", disk.operations.to_string()),
        ("Total sleep events", record.waits.to_string()),
        ("Total sleep time of all threads", format!("{:.1} s", record.waited_seconds)),
        ("Total execution time", format!("{:.1} s", record.seconds)),
        ("Average disk I/O rate", Rate::per_second(disk.bytes_per_second as u64).to_string()),
    ]);
    if record.metadata.operations > 0 {
        rows.push(("Calls on names and inodes", record.metadata.operations.to_string()));
    }
    let network = &record.network;
    if network.sent_bytes + network.received_bytes > 0 {
        rows.push(("Sent over the network", bytes(network.sent_bytes)));
        rows.push(("Received from the network", bytes(network.received_bytes)));
    }
    let waited = |part: &Part| (waited_for(part.reason), format!("{:.1} s", part.seconds));
    rows.extend(record.waited_for.iter().map(waited));
    let when = explanation::when(record.when);
    let limits = Resource::ALL
        .into_iter()
        .filter_map(|one| Some((threshold(one), amount(one, record.limit(one)?) + when)));
    rows.extend(limits);
    rows
}

fn waited_for(reason: Binding) -> &'static str {
    match reason {
        Binding::Paused => "Time for which it was paused",
        Binding::Unmet(_) => "Time for which its conditions were not met",
        Binding::UsedUp => "Time for which its disk total was used up",
        Binding::Memory => "Time for which it waited for memory",
        Binding::Least => "Time for which it gave way to others down to its least rate",
        Binding::Others(_) | Binding::Uplink => "Time for which it gave way to others",
        Binding::Limit(_) => match reason.resource() {
            Some(Resource::Net | Resource::NetUp | Resource::NetDown) => {
                "Time for which it waited for its network limit"
            }
            Some(Resource::Metadata) => "Time for which it waited for its limit of calls on names",
            _ => "Time for which it waited for its disk limit",
        },
    }
}

fn threshold(resource: Resource) -> &'static str {
    match resource {
        Resource::Total => "Threshold of all disk traffic",
        Resource::Read => "Threshold of reading",
        Resource::Write => "Threshold of writing",
        Resource::Operations => "Threshold of disk operations",
        Resource::Metadata => "Threshold of calls on names and inodes",
        Resource::Net => "Threshold of all network traffic",
        Resource::NetUp => "Threshold of sending",
        Resource::NetDown => "Threshold of receiving",
    }
}

fn amount(resource: Resource, limit: u64) -> String {
    match resource.is_bytes() {
        true => Rate::per_second(limit).to_string(),
        false => format!("{limit}/s"),
    }
}
