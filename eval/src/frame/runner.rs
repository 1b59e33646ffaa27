//! Runs experiments: requirements, steps, a record after each step, a bar on a terminal.

use std::fs::File;
use std::time::Instant;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::experiment::{Body, Entry, Experiment, Scale, Step, steps};
use super::facts::Facts;
use super::record::{Archive, Record, Settings};
use super::requirement::Requirement;
use crate::lab::{Lab, left_behind};
use crate::report;
use crate::site::Site;
use crate::{stop, tool};

/// Programs with versions that a reader may want to know.
const PROGRAMS: [&str; 6] = ["rsync", "tar", "grep", "make", "ionice", "losetup"];

/// How a run is made.
pub struct Run<'a> {
    /// The machine.
    pub site: &'a Site,
    /// Where records go.
    pub archive: &'a Archive,
    /// How much is measured.
    pub scale: Scale,
    /// Only cases with this in their names; all if `None`.
    pub only: Option<&'a str>,
}

impl Run<'_> {
    /// The samples of `experiment` that are asked for and are not in `record`.
    fn missing(&self, experiment: &dyn Experiment, record: Option<&Record>) -> Vec<Step> {
        let wanted = |step: &Step| self.only.is_none_or(|part| step.case.contains(part));
        let done = |step: &Step| record.is_some_and(|record| record.has(&step.case, step.round));
        let steps = steps(experiment, self.scale).into_iter();
        steps.filter(|step| wanted(step) && !done(step)).collect()
    }
}

/// Measures the named entries and prints a page for each; a view measures what it shows.
///
/// A measurement that fails, or an experiment that lacks something, does not keep the others from running.
///
/// # Errors
/// A stop was requested, a record cannot be read or written, or an experiment failed.
pub fn run(plan: &Run, all: &[Entry], names: &[&str]) -> anyhow::Result<()> {
    let measured = to_measure(all, names);
    let _alone = alone()?;
    let begin = Instant::now();
    let facts = Facts::gather(&PROGRAMS);
    let bar = bar(plan, &measured)?;
    let mut failed = Vec::new();
    for (name, experiment) in &measured {
        let result = one(plan, name, *experiment, &facts, &bar);
        stop::check()?;
        if let Err(error) = result {
            bar.suspend(|| eprintln!("{}{name}: {error:#}", crate::message::PREFIX));
            failed.push(*name);
        }
    }
    bar.finish_and_clear();
    let pages = all
        .iter()
        .filter(|entry| names.contains(&entry.name))
        .map(|entry| report::Page::new(entry, plan.archive))
        .collect::<anyhow::Result<Vec<_>>>()?;
    pages.iter().for_each(|page| println!("{}", report::print(page)));
    if pages.len() > 1 {
        println!("{}", report::summary(&pages));
        println!("{:.1} minutes", begin.elapsed().as_secs_f64() / 60.0);
    }
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}

/// Held by the one run that a machine can bear; the kernel takes it from the dead.
const LOCK: &str = "/run/discnice-eval.lock";

/// Keeps other runs out while the result lives; nothing to keep out where nothing can run.
fn alone() -> anyhow::Result<Option<File>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let file = File::create(LOCK).with_context(|| format!("cannot make {LOCK}"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => {
            bail!("another run measures already; two would disturb each other")
        }
        Err(error) => Err(error).with_context(|| format!("cannot lock {LOCK}")),
    }
}

/// The experiments behind the names, each once, in the order of the list.
fn to_measure<'a>(all: &'a [Entry], names: &[&str]) -> Vec<(&'static str, &'a dyn Experiment)> {
    let wanted = |entry: &Entry| {
        names.contains(&entry.name)
            || all.iter().any(|other| {
                names.contains(&other.name)
                    && matches!(other.body, Body::View { of, .. } if of.contains(&entry.name))
            })
    };
    all.iter()
        .filter(|entry| wanted(entry))
        .filter_map(|entry| match entry.body {
            Body::Measured(experiment) => Some((entry.name, experiment)),
            _ => None,
        })
        .collect()
}

/// What `experiment` lacks on this machine, in one line; `None` if it can run.
#[must_use]
pub fn lack(experiment: &dyn Experiment, site: &Site) -> Option<String> {
    let lacks: Vec<String> =
        experiment.requirements().into_iter().filter_map(|needed| needed.lack(site)).collect();
    (!lacks.is_empty()).then(|| lacks.join("; "))
}

/// The machine with the disk that the experiment needs.
fn site_for(experiment: &dyn Experiment, site: &Site) -> Site {
    let kind = experiment.requirements().into_iter().find_map(|needed| match needed {
        Requirement::DiskOf(kind) => Some(kind),
        _ => None,
    });
    kind.map_or_else(|| site.clone(), |kind| site.with_disk(kind))
}

fn one(
    plan: &Run,
    name: &str,
    experiment: &dyn Experiment,
    facts: &Facts,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let site = site_for(experiment, plan.site);
    let settings = settings(&site, plan.scale)?;
    let mut record = match plan.archive.load(name)? {
        Some(record) if record.settings != settings => bail!(
            "{} has a record made with other settings; give another --record or move it away",
            plan.archive.directory().display()
        ),
        Some(record) => record,
        None => Record::new(name, now()?, settings, facts.clone()),
    };
    let missing = plan.missing(experiment, Some(&record));
    if missing.is_empty() {
        return Ok(());
    }
    if let Some(lack) = lack(experiment, plan.site) {
        bar.suspend(|| eprintln!("{}{name} is not available: {lack}", crate::message::PREFIX));
        return Ok(());
    }
    record.facts.add_commits(&facts.commit);
    bar.set_message(format!("{name}: making files"));
    left_behind::remove()?;
    let lab = Lab::open(&site, name)?;
    let result = lab
        .in_no_time(|| experiment.prepare(&lab, plan.scale))
        .and_then(|()| measure(plan, experiment, &lab, &missing, &mut record, bar));
    lab.close()?;
    result
}

fn measure(
    plan: &Run,
    experiment: &dyn Experiment,
    lab: &Lab,
    missing: &[Step],
    record: &mut Record,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    record.skipped.clear();
    let mut failures = 0;
    for step in missing {
        stop::check()?;
        bar.set_message(format!("{}: {}, round {}", record.name, step.case, step.round + 1));
        let reason = match experiment.cannot(lab, &step.case) {
            Some(reason) => Some(reason),
            None => match experiment.measure(lab, step) {
                Ok(sample) => {
                    record.samples.push(sample);
                    None
                }
                Err(error) => {
                    // What a stop request has killed did not fail.
                    stop::check()?;
                    failures += 1;
                    Some(format!("{error:#}"))
                }
            },
        };
        let line = reason.map(|reason| format!("{}: {reason}", step.case));
        record.skipped.extend(line.filter(|line| !record.skipped.contains(line)));
        plan.archive.store(record)?;
        bar.inc(step.seconds.ceil() as u64);
    }
    if failures > 0 {
        bail!("{failures} of {} measurements failed; run it again to repeat them", missing.len());
    }
    record.complete = plan.only.is_none();
    plan.archive.store(record)
}

/// A bar as long as the estimated time of all steps to come; hidden without a terminal.
fn bar(plan: &Run, measured: &[(&'static str, &dyn Experiment)]) -> anyhow::Result<ProgressBar> {
    let mut seconds = 0;
    for (name, experiment) in measured {
        let record = plan.archive.load(name)?;
        if lack(*experiment, plan.site).is_none() {
            let missing = plan.missing(*experiment, record.as_ref());
            seconds += missing.iter().map(|step| step.seconds.ceil() as u64).sum::<u64>();
        }
    }
    let bar = ProgressBar::new(seconds);
    let style =
        ProgressStyle::with_template("{bar:24} {percent:>3} %  about {eta} left  {wide_msg}")
            .context("the bar's template is wrong")?;
    bar.set_style(style);
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    Ok(bar)
}

fn settings(site: &Site, scale: Scale) -> anyhow::Result<Settings> {
    let disk = match crate::disk::running() {
        Ok(state) => state.in_words(),
        Err(_) => site.wanted()?.in_words(),
    };
    Ok(Settings { quick: scale.quick, evaluator: env!("CARGO_PKG_VERSION").into(), disk })
}

fn now() -> anyhow::Result<String> {
    tool::run("date", ["--utc", "+%Y-%m-%d %H:%M:%S"])
}
