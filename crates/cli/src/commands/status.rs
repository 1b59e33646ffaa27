//! `discnice status`: what is limited, and what escapes.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use discnice_escape::Foreign;
use discnice_ledger::policy::memory::Bounds;
use discnice_ledger::policy::{Condition, Memory, Resource, When};
use discnice_progress::control::report::Report;
use discnice_sys::time;
use discnice_units::{Bytes, Nanos, Rate};
use discnice_watcher::holding::let_go_of_abandoned;
use serde::Serialize;

use super::by_mechanism::ByMechanism;
use super::limits::{Cache, Shared};
use super::member_report::MemberReport;
use super::{status_polite, status_why};
use crate::binding::Binding;
use crate::classes::{self, Found};
use crate::fleet::Share;
use crate::output::{self, Lines, say};
use crate::prediction::PredictionReport;
use crate::running::Running;
use crate::uplink::Queue;
use crate::watching::read_the_clock_by_libc;
use crate::{guest, json, own_policy, used_up};

/// So many classes are worth a thread.
const MANY: usize = 50;

const EXAMPLES: &str = "\
Examples:
  discnice status             what runs, how fast, and what it waits for
  discnice status --json      the same as JSON
  discnice status --why       how many calls went on for which reason, in each class";

/// Show classes, their members, their rates, and what cannot be limited
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show how many calls, and how many bytes, went on for which reason instead
    #[arg(long, value_name = "CLASS", num_args = 0..=1)]
    why: Option<Option<String>>,
}

impl Status {
    /// Prints it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(class) = self.why {
            return status_why::run(class.as_deref(), self.json);
        }
        read_the_clock_by_libc();
        let_go_of_abandoned();
        let (jobs, notices) = (status_polite::jobs(), status_polite::notices());
        let classes = classes::all()?;
        let mut notices = notices;
        notices.extend(of_other_versions());
        if self.json {
            let classes = machine_reports(&classes, 1)?;
            let others = serde_json::to_string_pretty(&Others { jobs, notices })?;
            let others = others.trim_start_matches('{');
            output::json(&format!("{{\n  \"classes\": {classes},{others}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        if !classes.is_empty() || jobs.is_empty() {
            print(&classes, false, true)?;
        }
        status_polite::print(&jobs, &notices)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is to be said of classes that this version cannot read.
fn of_other_versions() -> Option<String> {
    match classes::of_other_versions() {
        0 => None,
        count => Some(format!(
            "{count} classes of another version of DiscNice: their processes go on within their limits"
        )),
    }
}

/// What `status --json` prints besides the `classes`.
#[derive(Debug, Serialize)]
struct Others {
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
    /// Whether its shared memory was removed (ipcrm(1), `class rm --force`): its members are held, and nothing new
    /// joins it.
    removed: bool,
    /// `limit_R` for each resource R.
    #[serde(flatten)]
    limits: BTreeMap<String, Option<u64>>,
    net_loopback: bool,
    /// `always` or `busy`: when the limits hold.
    when: &'static str,
    /// Whether the limits hold now, because others are busy; always true for `always`.
    throttled: bool,
    /// Bytes a second that it may have while it gives way; `null` without such a rate.
    at_least: Option<u64>,
    weight: u32,
    /// Whether each child of a member has the limits for itself, in a class of its own.
    per_child: bool,
    /// The class that it has its limits from, as its first member is a child of a member of that; `null` for any other.
    child_of: Option<String>,
    /// `window`, `sleep` or `program`.
    policy: &'static str,
    /// How the program is that is the policy: `unasked`, `answers`, `ended`, `silent` or `wrong`; `null` without one.
    policy_program: Option<&'static str>,
    /// Time over which the limits hold.
    window_seconds: f64,
    /// What was given as the shortest and the longest wait; `null` for the usual one.
    shortest_sleep_seconds: Option<f64>,
    longest_sleep_seconds: Option<f64>,
    guest: bool,
    cache: Cache,
    uplink: Shared,
    /// The queue on the network that it gives way to.
    uplink_queue: Option<Queue>,
    /// Bytes of resident memory down to which pages are taken while others wait for memory; `null` without
    /// such a bound.
    memory_low: Option<u64>,
    /// Bytes of resident memory above which they are.
    memory_high: Option<u64>,
    /// Whether either was given, not only found by default.
    #[serde(skip)]
    memory_given: bool,
    /// Whether it stands still for that now.
    memory_held: bool,
    /// Bytes that it may move in all; `null` without such a bound.
    disk_total: Option<u64>,
    /// How many of them it has moved; `null` without a bound.
    disk_total_used: Option<u64>,
    /// Conditions that a job of it waits for: `ac`, `unmetered`, `idle`, `hours`, `load`, `cmd`.
    unmet: Vec<&'static str>,
    /// What the next call waits for: `paused`, `condition`, `disk_total`, `memory`, `at_least`,
    /// `others`, or the resource of an overdrawn limit; `null` for
    /// nothing.
    waits_for: Option<Binding>,
    /// Whether the user has paused it; of a member see there.
    paused: bool,
    /// Whether `discnice trace` shows its calls.
    traced: bool,
    /// `rate_R` for each resource R: over the last second.
    #[serde(flatten)]
    rates: BTreeMap<String, u64>,
    read: u64,
    written: u64,
    by_mechanism: ByMechanism,
    operations: u64,
    metadata: u64,
    sent: u64,
    received: u64,
    waits: u64,
    waited_seconds: f64,
    /// What it has of a budget that it shares with other machines; `null` without one.
    fleet: Option<Share>,
    /// Members beyond those that can be listed.
    unlisted: u32,
    /// Prediction against account, if asked for.
    prediction: Option<PredictionReport>,
    members: Vec<MemberReport>,
}

impl ClassReport {
    /// What is known of a class; `seen`: with what was predicted and what the kernel says of each of its processes.
    fn of(found: &Found, seen: bool) -> Self {
        let class = found.class;
        let (limits, now) = (class.limits(), time::now());
        let (waits, waited) = class.waits();
        let total = |resource| class.meter(resource).total();
        let limit = |one| Some(limits.rate(one)).filter(|rate| !rate.is_unlimited());
        let rate = |one| class.meter(one).recent().rate(now);
        let named = |prefix, one: Resource| format!("{prefix}_{}", one.name());
        let every = Resource::ALL.into_iter();
        let memory = guest::memory(class);
        let running: Vec<Running<'_>> = Running::all(found).collect();
        Self {
            name: found.name(),
            automatic: found.is_automatic(),
            removed: found.removed,
            limits: every
                .clone()
                .map(|one| (named("limit", one), limit(one).map(Rate::get)))
                .collect(),
            net_loopback: limits.loopback(),
            when: if limits.when() == When::Busy { "busy" } else { "always" },
            throttled: !class.yields() || !class.limited().is_empty(),
            at_least: limits.at_least().map(Rate::get),
            weight: limits.weight(),
            per_child: limits.per_child(),
            child_of: class.parent().and_then(classes::name_of),
            policy: limits.pace().policy.name(),
            policy_program: own_policy::health(class),
            window_seconds: limits.pace().window().as_secs_f64(),
            shortest_sleep_seconds: limits.pace().given_shortest_sleep().map(Nanos::as_secs_f64),
            longest_sleep_seconds: limits.pace().given_longest_sleep().map(Nanos::as_secs_f64),
            guest: limits.guest(),
            cache: Cache::of(limits.protects_cache()),
            uplink: Shared::of(limits.yields_uplink()),
            uplink_queue: Queue::of(class),
            memory_low: memory.map(|bounds| bounds.low),
            memory_high: memory.map(|bounds| bounds.high),
            memory_given: class.memory() != Memory::DEFAULT,
            memory_held: running.iter().any(Running::rests),
            disk_total: limits.disk_total().map(Bytes::get),
            disk_total_used: limits.disk_total().map(|_| class.disk_total_used().get()),
            unmet: class.unmet().iter().map(Condition::name).collect(),
            waits_for: Binding::of(found, running.iter().any(Running::rests)),
            paused: class.is_paused(),
            traced: class.is_traced(),
            rates: every.map(|one| (named("rate", one), rate(one))).collect(),
            read: total(Resource::Read),
            written: total(Resource::Write),
            by_mechanism: ByMechanism::of(class),
            operations: total(Resource::Operations),
            metadata: total(Resource::Metadata),
            sent: total(Resource::NetUp),
            received: total(Resource::NetDown),
            waits,
            waited_seconds: waited.as_secs_f64(),
            fleet: Share::of(class, now),
            unlisted: class.unlisted(),
            prediction: seen.then(|| PredictionReport::of(class)),
            members: running.iter().map(|one| MemberReport::of(one, &limits, seen)).collect(),
        }
    }

    /// Its name, and what has become of it.
    fn title(&self) -> String {
        if self.removed { format!("{} (removed)", self.name) } else { self.name.clone() }
    }

    /// What it waits for, in words.
    fn now(&self) -> String {
        match self.waits_for {
            _ if self.members.is_empty() => String::new(),
            Some(Binding::Paused) => "paused".into(),
            Some(reason) => format!("waits for {}", reason.words()),
            None => String::new(),
        }
    }

    fn rate(&self, resource: Resource) -> u64 {
        self.rates.get(&format!("rate_{}", resource.name())).copied().unwrap_or(0)
    }

    fn limit(&self, resource: Resource) -> Option<u64> {
        self.limits.get(&format!("limit_{}", resource.name())).copied().flatten()
    }
}

/// Reports of all classes, for people.
fn reports(classes: &[Found]) -> Vec<ClassReport> {
    let every =
        |part: &[Found]| part.iter().map(|found| ClassReport::of(found, false)).collect::<Vec<_>>();
    by_all(classes, every).into_iter().flatten().collect()
}

/// Reports of all classes, for machines: an array that stands `depth` deep in what is printed.
fn machine_reports(classes: &[Found], depth: usize) -> serde_json::Result<String> {
    let every =
        |part: &[Found]| json::array(part.iter().map(|found| ClassReport::of(found, true)), depth);
    let parts: serde_json::Result<Vec<String>> = by_all(classes, every).into_iter().collect();
    Ok(json::join(parts?, depth))
}

/// What `every` makes of all classes; of many, by all processors, in parts: the kernel takes some microseconds
/// for each member's life and account.
fn by_all<T: Send>(classes: &[Found], every: impl Fn(&[Found]) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    if classes.len() < MANY || workers == 1 {
        return vec![every(classes)];
    }
    let every = &every;
    let parts = classes.chunks(classes.len().div_ceil(workers));
    thread::scope(|scope| {
        let each: Vec<_> = parts
            .map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || every(part))))
            .collect();
        // A part that no thread can be had for, or that a thread died at, is done here.
        each.into_iter()
            .map(|(part, thread)| {
                let done = thread.ok().and_then(|thread| thread.join().ok());
                done.unwrap_or_else(|| every(part))
            })
            .collect()
    })
}

/// Prints classes, with their members if `members`.
pub fn print(classes: &[Found], json: bool, members: bool) -> anyhow::Result<()> {
    if json {
        output::json(&machine_reports(classes, 0)?)?;
        return Ok(());
    }
    let reports = reports(classes);
    if reports.is_empty() {
        say!("Nothing is limited.")?;
    } else {
        table(&reports, members).say()?;
    }
    Ok(())
}

/// Columns of limits: at least, and at most for longer texts that stand among shorter ones.
const LIMITS: (usize, usize) = (13, 44);

fn table(reports: &[ClassReport], members: bool) -> Lines {
    let mut lines = Lines::default();
    let every: Vec<String> = reports.iter().map(limits).collect();
    let longest = every.iter().map(String::len).filter(|length| *length <= LIMITS.1).max();
    let wide = longest.unwrap_or(0).max(LIMITS.0);
    lines.push(format_args!(
        "{:<24} {:>wide$} {:>11} {:>11} {:>11} {:>10} {:>9} {:>7}  {}",
        "CLASS", "LIMIT", "READING", "WRITING", "NETWORK", "MOVED", "WAITED", "MEMBERS", "NOW"
    ));
    for (report, limits) in reports.iter().zip(every) {
        let rate = |resources: &[Resource]| {
            let sum = resources.iter().map(|one| report.rate(*one)).sum();
            Rate::per_second(sum).to_string()
        };
        lines.push(format_args!(
            "{:<24} {limits:>wide$} {:>11} {:>11} {:>11} {:>10} {:>8.1}s {:>7}  {}",
            Foreign::text(&report.title()),
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
    let shown: Vec<String> = Resource::ALL
        .into_iter()
        .filter_map(|one| Some(threshold(one, report.limit(one)?)))
        .chain(memory.filter(|_| report.memory_given))
        .chain(in_all(report))
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
