//! `discnice status`: what is limited, and what escapes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use discnice_budget::{Direction, Member, State};
use discnice_sys::{process, time};
use discnice_units::{Bytes, Nanos, Rate};
use serde::Serialize;

use crate::classes::{self, Found};
use crate::output::say;
use crate::program;

/// Show classes, their members, their rates, and what cannot be limited
#[derive(Debug, Args)]
pub struct Status {
    /// For machines
    #[arg(long)]
    json: bool,
}

impl Status {
    /// Prints it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        print(&classes::all()?, self.json, true)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// One class, as `--json` prints it. Rates are bytes (or operations) per second, `null` without
/// a limit; amounts are bytes since the class was made; times are seconds.
#[derive(Debug, Serialize)]
struct ClassReport {
    name: String,
    automatic: bool,
    limit_total: Option<u64>,
    limit_read: Option<u64>,
    limit_write: Option<u64>,
    limit_operations: Option<u64>,
    /// Over the last second.
    rate_read: u64,
    rate_write: u64,
    read: u64,
    written: u64,
    waits: u64,
    waited_seconds: f64,
    /// Regulated processes that found no slot to be listed in.
    unlisted: u32,
    members: Vec<MemberReport>,
}

/// One process, as `--json` prints it.
#[derive(Debug, Serialize)]
struct MemberReport {
    process: u32,
    name: String,
    /// How it is held: `preload`, or `none`.
    mechanism: &'static str,
    /// Why it is not held, if it is not.
    escape: Option<String>,
    read: u64,
    written: u64,
    waited_seconds: f64,
}

fn limit(rate: Rate) -> Option<u64> {
    (!rate.is_unlimited()).then(|| rate.get())
}

impl ClassReport {
    fn of(found: &Found) -> Self {
        let class = found.class;
        let (limits, now) = (class.limits(), time::now());
        let (read, write) = (class.direction(Direction::Read), class.direction(Direction::Write));
        let (waits, waited) = class.waits();
        Self {
            name: found.name(),
            automatic: found.is_automatic(),
            limit_total: limit(limits.total),
            limit_read: limit(limits.read),
            limit_write: limit(limits.write),
            limit_operations: limit(limits.operations),
            rate_read: read.recent().rate(now),
            rate_write: write.recent().rate(now),
            read: read.total(),
            written: write.total(),
            waits,
            waited_seconds: waited.as_secs_f64(),
            unlisted: class.unlisted(),
            members: class.living(is_running).map(MemberReport::of).collect(),
        }
    }
}

impl MemberReport {
    fn of(member: &Member) -> Self {
        let name = member.name();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let escape = escape(member);
        let charged = member.books().charged();
        Self {
            process: member.process(),
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            mechanism: if escape.is_some() { "none" } else { "preload" },
            escape,
            read: charged.read,
            written: charged.written,
            waited_seconds: Nanos(member.books().waited()).as_secs_f64(),
        }
    }
}

/// Whether a process exists and has not ended: one that has ended still exists until its parent
/// waits for it.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let state = stat.ok().and_then(|text| text.rsplit(')').next()?.trim_start().chars().next());
    process::exists(process) && !matches!(state, Some('Z' | 'X'))
}

/// Why a process is not held: it executed a program in which our library never reported, or it
/// filters its own system calls.
fn escape(member: &Member) -> Option<String> {
    let why = match member.state() {
        State::Executing => None,
        State::Confined => Some("forbids itself system calls that limiting needs (seccomp)"),
        State::Free | State::Claimed | State::Active => return None,
    };
    let path = std::fs::read_link(format!("/proc/{}/exe", member.process()))
        .unwrap_or_else(|_| PathBuf::from("its program"));
    let kind = program::kind(&path);
    let why = why.or_else(|| kind.obstacle()).unwrap_or("has not loaded the library");
    Some(format!("{} {why}", path.display()))
}

/// Prints classes, with their members if `members`.
pub fn print(classes: &[Found], json: bool, members: bool) -> anyhow::Result<()> {
    let reports: Vec<ClassReport> = classes.iter().map(ClassReport::of).collect();
    if json {
        say!("{}", serde_json::to_string_pretty(&reports)?)?;
    } else if reports.is_empty() {
        say!("Nothing is limited.")?;
    } else {
        print_table(&reports, members)?;
    }
    Ok(())
}

fn print_table(reports: &[ClassReport], members: bool) -> anyhow::Result<()> {
    say!(
        "{:<24} {:>13} {:>13} {:>13} {:>13} {:>10} {:>8}",
        "CLASS",
        "LIMIT",
        "READING",
        "WRITING",
        "MOVED",
        "HELD",
        "MEMBERS"
    )?;
    for report in reports {
        say!(
            "{:<24} {:>13} {:>13} {:>13} {:>13} {:>9.1}s {:>8}",
            report.name,
            limits(report),
            Rate::per_second(report.rate_read).to_string(),
            Rate::per_second(report.rate_write).to_string(),
            Bytes::new(report.read + report.written).to_string(),
            report.waited_seconds,
            report.members.len(),
        )?;
        for member in report.members.iter().filter(|_| members) {
            let what = member
                .escape
                .as_deref()
                .map_or_else(String::new, |why| format!("NOT LIMITED: {why}"));
            say!(
                "  {:>8} {:<16} {:>13} read {:>13} written {:>8.1}s held  {what}",
                member.process,
                member.name,
                Bytes::new(member.read).to_string(),
                Bytes::new(member.written).to_string(),
                member.waited_seconds,
            )?;
        }
    }
    Ok(())
}

/// The tightest limit that says most, in one column.
fn limits(report: &ClassReport) -> String {
    let both = [("", report.limit_total), ("r ", report.limit_read), ("w ", report.limit_write)];
    let shown: Vec<String> = both
        .iter()
        .filter_map(|(mark, rate)| Some(format!("{mark}{}", Rate::per_second((*rate)?))))
        .chain(report.limit_operations.map(|count| format!("{count} ops/s")))
        .collect();
    if shown.is_empty() { "unlimited".into() } else { shown.join(", ") }
}
