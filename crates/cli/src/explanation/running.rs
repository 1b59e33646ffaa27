//! A class, or a process that runs.

use std::borrow::Cow;

use discnice_escape::Foreign;
use discnice_progress::control::report::posted;
use discnice_progress::testpoint::paths;
use discnice_units::{Bytes, Nanos};
use discnice_watcher::process::{Pinned, examine};

use super::{Explanation, PROGRESS, limits, others, waiting};
use crate::classes::MappedClass;
use crate::commands::member_report::MemberReport;
use crate::output::counted;
use crate::own_policy;
use crate::running::Running;

/// Explains what a class holds.
pub fn class(found: &MappedClass) -> Explanation {
    let own = found.class.limits();
    let members: Vec<MemberReport> =
        Running::all(found).map(|running| MemberReport::of(&running, &own, false)).collect();
    let held = members.iter().filter(|member| member.escape.is_none()).collect::<Vec<_>>();
    let mut mechanisms: Vec<&str> = held.iter().map(|member| member.mechanism).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    let count = |one: &str| held.iter().filter(|member| member.mechanism == one).count();
    let by = |one: &str| format!("{one}: {}", counted(count(one), "process", "processes"));
    let escapes = members.iter().filter_map(|member| {
        let why = member.not_held()?;
        Some(format!("process {} ({}): {why}", member.process, Foreign::text(&member.name)))
    });
    let policy = own_policy::problem(found.class)
        .map(|why| format!("by a policy of your own: {why} (its limits hold)"));
    Explanation {
        about: format!("class {}", Foreign::text(&found.name())),
        class: None,
        limits: limits(&own),
        when: Vec::new(),
        held_by: mechanisms.into_iter().map(by).collect(),
        waits_for: waiting::of_class(found),
        not_held: escapes.chain(policy).collect(),
    }
}

/// Explains what holds a process, or that nothing does.
pub fn process(pinned: &Pinned, class: Option<MappedClass>) -> Explanation {
    let id = pinned.id();
    let name = others::name(id);
    let about = format!("process {id} ({})", Foreign::text(&name));
    let Some(found) = class else { return stranger(about, pinned) };
    let running = Running::all(&found).find(|running| running.member.process() == id);
    let Some(running) = running else { return stranger(about, pinned) };
    let report = MemberReport::of(&running, &found.class.limits(), true);
    let why = report.why.map_or(String::new(), |why| format!(": {why}"));
    let held_by = match &report.escape {
        Some(_) => Vec::new(),
        None => vec![format!("{}{why}", mechanism(report.mechanism)), moved(&report)],
    };
    let mut waits_for = waiting::of_process(&found, &running);
    waits_for.extend(regulated(id));
    Explanation {
        about,
        class: Some(found.name()),
        limits: limits(&found.class.limits()),
        when: Vec::new(),
        held_by,
        waits_for,
        not_held: report.not_held().map(Cow::into_owned).into_iter().collect(),
    }
}

/// A process of no class.
fn stranger(about: String, pinned: &Pinned) -> Explanation {
    let regulated: Vec<String> = regulated(pinned.id()).collect();
    let not_held = match examine(pinned) {
        _ if !regulated.is_empty() => Vec::new(),
        Ok(()) => vec![format!(
            "it is in no class; `discnice attach --disk 5M {}` limits it, from outside",
            pinned.id()
        )],
        Err(refusal) => vec![format!("it is in no class, and cannot be attached: {refusal}")],
    };
    let held_by = if regulated.is_empty() { Vec::new() } else { vec![PROGRESS.into()] };
    Explanation { about, held_by, waits_for: regulated, not_held, ..Explanation::default() }
}

/// What the regulator by progress says of a job with this first process.
fn regulated(id: u32) -> impl Iterator<Item = String> {
    let jobs = paths::runtime().map(|private| posted(private.path())).unwrap_or_default();
    let own = jobs.into_iter().filter(move |job| job.process == id);
    own.map(|job| {
        let seconds = job.suspended_seconds;
        if job.suspended {
            format!("its progress to be good again (--polite); {seconds:.1} s so far")
        } else {
            format!("nothing of its progress (--polite); it waited {seconds:.1} s so far")
        }
    })
}

fn mechanism(name: &'static str) -> &'static str {
    match name {
        "preload" => "the library in it (preload)",
        "seccomp" => "a supervisor of its calls (seccomp)",
        "freeze" => "policyd or `attach`, from outside (freeze)",
        "signals" => "policyd or `attach`, by stop signals (signals)",
        other => other,
    }
}

fn moved(report: &MemberReport) -> String {
    let (read, written) = (Bytes::new(report.read), Bytes::new(report.written));
    let inside = Nanos((report.waited_seconds * 1e9) as u64);
    let outside = Nanos((report.frozen_seconds * 1e9) as u64);
    format!(
        "so far: read {read}, written {written}; waited {inside} (sum of its threads), stopped from outside for {outside}"
    )
}
