//! `discnice status`: what is limited, and what escapes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use discnice_benice::report::Report;
use discnice_budget::{Member, State};
use discnice_policy::{Resource, When};
use discnice_sys::{process, procfs, time};
use discnice_units::{Bytes, Nanos, Rate};
use serde::Serialize;

use super::status_polite;
use crate::classes::{self, Found};
use crate::output::say;
use crate::prediction::PredictionReport;
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
        let (jobs, notices) = (status_polite::jobs(), status_polite::notices());
        let classes = classes::all()?;
        if self.json {
            let classes = classes.iter().map(ClassReport::of).collect();
            say!("{}", serde_json::to_string_pretty(&Everything { classes, jobs, notices })?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !classes.is_empty() || jobs.is_empty() {
            print(&classes, false, true)?;
        }
        status_polite::print(&jobs, &notices)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What `status --json` prints.
#[derive(Debug, Serialize)]
struct Everything {
    classes: Vec<ClassReport>,
    /// Jobs that are regulated by their progress, from outside.
    jobs: Vec<Report>,
    /// What went wrong without stopping anything.
    notices: Vec<String>,
}

/// One class, as `--json` prints it. Rates are bytes (or operations) per second, `null` without
/// a limit; amounts are bytes since the class was made; times are seconds.
#[derive(Debug, Serialize)]
struct ClassReport {
    name: String,
    automatic: bool,
    /// `limit_R` for each resource R.
    #[serde(flatten)]
    limits: BTreeMap<String, Option<u64>>,
    net_loopback: bool,
    /// `always` or `busy`: when the limits hold.
    when: &'static str,
    /// Whether the limits hold now, because others are busy; always true for `always`.
    throttled: bool,
    weight: u32,
    guest: bool,
    /// `rate_R` for each resource R: over the last second.
    #[serde(flatten)]
    rates: BTreeMap<String, u64>,
    read: u64,
    written: u64,
    operations: u64,
    metadata: u64,
    sent: u64,
    received: u64,
    waits: u64,
    waited_seconds: f64,
    /// Members beyond those that can be listed.
    unlisted: u32,
    /// Prediction against account.
    prediction: PredictionReport,
    members: Vec<MemberReport>,
}

/// One process, as `--json` prints it.
#[derive(Debug, Serialize)]
struct MemberReport {
    process: u32,
    name: String,
    /// How it is held: `preload`, `seccomp`, or `none`.
    mechanism: &'static str,
    /// Why it is not held, if it is not.
    escape: Option<String>,
    read: u64,
    written: u64,
    waited_seconds: f64,
}

impl ClassReport {
    fn of(found: &Found) -> Self {
        let class = found.class;
        let (limits, now) = (class.limits(), time::now());
        let (waits, waited) = class.waits();
        let total = |resource| class.meter(resource).total();
        let limit = |one| Some(limits.rate(one)).filter(|rate| !rate.is_unlimited());
        let rate = |one| class.meter(one).recent().rate(now);
        let named = |prefix, one: Resource| format!("{prefix}_{}", one.name());
        let every = Resource::ALL.into_iter();
        Self {
            name: found.name(),
            automatic: found.is_automatic(),
            limits: every
                .clone()
                .map(|one| (named("limit", one), limit(one).map(Rate::get)))
                .collect(),
            net_loopback: limits.loopback(),
            when: if limits.when() == When::Busy { "busy" } else { "always" },
            throttled: !class.yields() || !class.limited().is_empty(),
            weight: limits.weight(),
            guest: limits.guest(),
            rates: every.map(|one| (named("rate", one), rate(one))).collect(),
            read: total(Resource::Read),
            written: total(Resource::Write),
            operations: total(Resource::Operations),
            metadata: total(Resource::Metadata),
            sent: total(Resource::NetUp),
            received: total(Resource::NetDown),
            waits,
            waited_seconds: waited.as_secs_f64(),
            unlisted: class.unlisted(),
            prediction: PredictionReport::of(class),
            members: class.living(is_running).map(MemberReport::of).collect(),
        }
    }

    fn rate(&self, resource: Resource) -> u64 {
        self.rates.get(&format!("rate_{}", resource.name())).copied().unwrap_or(0)
    }

    fn limit(&self, resource: Resource) -> Option<u64> {
        self.limits.get(&format!("limit_{}", resource.name())).copied().flatten()
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
            mechanism: mechanism(member.state(), escape.is_some()),
            escape,
            read: charged.read,
            written: charged.written,
            waited_seconds: Nanos(member.books().waited()).as_secs_f64(),
        }
    }
}

fn mechanism(state: State, escapes: bool) -> &'static str {
    match state {
        _ if escapes => "none",
        State::Notified => "seccomp",
        _ => "preload",
    }
}

/// Whether a process exists and has not ended: one that has ended still exists until its parent
/// waits for it.
fn is_running(process: u32) -> bool {
    // Without /proc nobody is called ended.
    process::exists(process) && !procfs::stat(process).is_some_and(|stat| stat.has_ended())
}

/// Why a process is not held: it executed a program in which our library never reported, or it
/// filters its own system calls.
fn escape(member: &Member) -> Option<String> {
    let why = match member.state() {
        State::Executing => None,
        State::Confined => Some("forbids itself system calls that limiting needs (seccomp)"),
        State::Free | State::Claimed | State::Active | State::Notified | State::Outside => {
            return None;
        }
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
            Rate::per_second(report.rate(Resource::Read)).to_string(),
            Rate::per_second(report.rate(Resource::Write)).to_string(),
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

/// All thresholds of a class in one column, each with a mark of what it is about.
fn limits(report: &ClassReport) -> String {
    let shown: Vec<String> = Resource::ALL
        .into_iter()
        .filter_map(|one| Some(threshold(one, report.limit(one)?)))
        .collect();
    let state = match (report.when, report.throttled) {
        ("busy", true) => " (others are busy)",
        ("busy", false) => " (when others are busy)",
        _ => "",
    };
    let shown = if shown.is_empty() { "unlimited".into() } else { shown.join(", ") };
    shown + state
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
