//! `discnice attach --disk 5M PID…`: limits for processes that run already.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use discnice_ledger::Direction;
use discnice_ledger::outside::Reason;
use discnice_ledger::policy::{Limits, Resources};
use discnice_processes::fork;
use discnice_processes::tree::{Process, Tree};
use discnice_sys::{deadline, process, time};
use discnice_units::{Bytes, Moment, Nanos, Rate};
use discnice_watcher::Helpers;
use discnice_watcher::daemon::tuning;
use discnice_watcher::discovery::announcements::Announced;
use discnice_watcher::discovery::census::Census;
use discnice_watcher::network;
use discnice_watcher::others::observer::Observer;
use discnice_watcher::process::{Pinned, examine, lives, pin};
use discnice_watcher::schedule::reactor::Reactor;
use discnice_watcher::watch::Watch;
use rustix::process::getpid;

use super::limits::LimitArgs;
use crate::classes::{self, MappedClass, Origin};
use crate::config::{self, ConfigFiles};
use crate::family::Family;
use crate::joining::{ADVANCE, call_daemon, enter, enter_descendants, release};
use crate::output::{say, tell};
use crate::schedule::{Job, Schedule, ScheduleArgs};
use crate::used_up::Teller;
use crate::{fleet, membership, own_policy};

/// A line with rates is shown this often.
const SHOW: Duration = Duration::from_millis(1000);
/// A watcher shows that it lives at least this often.
const BEAT: Nanos = Nanos::from_millis(250);

/// What is wanted, and of which processes.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The processes.
    pub pids: &'a [i32],
    /// Their limits.
    pub limits: &'a LimitArgs,
    /// Until when they run.
    pub schedule: &'a ScheduleArgs,
    /// The name of their class.
    pub class: Option<&'a str>,
    /// Whether the daemon is to hold them when this program has ended.
    pub background: bool,
}

/// Limits the processes until they have ended or a signal ends this program, which shows rates.
///
/// # Errors
/// One line for people: which PID cannot be limited and why. Nothing was changed then.
pub fn run(wanted: &Wanted<'_>) -> anyhow::Result<ExitCode> {
    let Wanted { pids, limits, schedule, class, background } = *wanted;
    let asked = checked(wanted)?;
    let pinned = pids.iter().map(|&pid| candidate(pid)).collect::<anyhow::Result<Vec<_>>>()?;
    let roots: Vec<Process> = pinned.iter().map(|one| one.process).collect();
    let tree = Tree::new(&roots);
    ensure!(
        !tree.contains(getpid()),
        "this command descends from one of the processes and would hold itself; start it elsewhere"
    );
    let (found, new) = class_for(wanted, asked, &pinned)?;
    if background {
        // The daemon is there before any process is limited: what passes while it starts is not to
        // be paid for.
        call_daemon(&found, &pinned)?;
    }
    if new {
        found.class.forfeit_credit(time::now().plus(ADVANCE));
    }
    for one in &pinned {
        enter(&found, one, Reason::Attached)?;
    }
    // While the daemon started, some have ended and others were born.
    enter_descendants(&found, &Tree::new(&roots));
    if background {
        call_daemon(&found, &pinned)?;
        say!("limited in class {}; `discnice detach` ends it", found.name())?;
        return Ok(ExitCode::SUCCESS);
    }
    let own = class.is_some() || limits.has_threshold();
    let outcome = show_and_keep(schedule.begin(&found, || own), &Job { found, roots });
    release(&found, &pinned);
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Returns the limits that are asked for, if they can hold for running processes.
fn checked(wanted: &Wanted<'_>) -> anyhow::Result<Limits> {
    let Wanted { limits, schedule, class, background, .. } = *wanted;
    schedule.check(class)?;
    let asked = limits.over(Limits::UNLIMITED)?;
    own_policy::check_start(class, &asked)?;
    let network = network::seen();
    if let Some(limit) = asked.beyond(Resources::DISK.and(network)) {
        bail!("{} does not hold for a running process; leave it out", limit.option());
    }
    if let Some(limit) = asked.beyond(Resources::FROM_OUTSIDE.and(network)) {
        let limit = limit.option();
        tell!(
            "discnice: {limit} holds for large operations only: from outside 512 KiB count as one"
        );
    }
    ensure!(
        background || !asked.per_child(),
        "--per-child needs --background: the daemon makes the classes of the children"
    );
    Ok(asked)
}

/// Finds or makes the class that the processes are to enter, with these limits; whether it is new.
fn class_for(
    wanted: &Wanted<'_>,
    asked: Limits,
    pinned: &[Pinned],
) -> anyhow::Result<(MappedClass, bool)> {
    let Wanted { limits, class, .. } = *wanted;
    let name = class.map_or_else(|| automatic(pinned), str::to_owned);
    let (found, origin) = classes::find_or_create(&name)?;
    let new = origin == Origin::New;
    if new {
        found.set_limits(&config::permitted(&name, asked));
    } else if !limits.is_empty() {
        super::class::change(&found, limits)?;
    }
    if class.is_some() {
        fleet::follow(&found, &ConfigFiles::load()?);
    }
    if let Some(problem) = fleet::await_lease(&found) {
        tell!("discnice: {problem}");
    }
    Ok((found, new))
}

/// A process that may be limited, and is not yet.
fn candidate(pid: i32) -> anyhow::Result<Pinned> {
    let pinned = pin(pid)?;
    examine(&pinned)?;
    for found in classes::all()? {
        if membership::lists(&found, &pinned) {
            bail!("process {pid} is limited already, by class {}", found.name());
        }
    }
    Ok(pinned)
}

fn automatic(pinned: &[Pinned]) -> String {
    let first = pinned.first().map_or(0, Pinned::id);
    classes::automatic_name("attach", first)
}

/// Shows rates until no process is left, or a signal asks to end. A child watches, which the terminal's ^Z does not reach: then
/// only the rates stop.
fn show_and_keep(mut schedule: Schedule, job: &Job) -> anyhow::Result<()> {
    let found = &job.found;
    let (mut failed, mut used_up) = (Ok(()), Teller::default());
    let mut family = Family::of(*found);
    let mut show = || {
        family.look();
        used_up.look(&family);
        schedule.look(job);
        failed = show(found, time::now());
        if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let kept = fork::kept(SHOW, &mut show, || keep(found));
    schedule.end(found);
    kept.context("cannot watch the processes")?;
    failed
}

/// Watches until no member is left, unless another watcher lives.
fn keep(found: &MappedClass) {
    let Ok(mut reactor) = Reactor::new() else { return };
    let board = discnice_registry::MappedBoard::find_or_create().ok().map(|found| found.board);
    let (class, helpers, mut observer) = (found.class, Helpers::on(board), Observer::at(board));
    let mut announced = board.and_then(|board| Announced::on(board).ok());
    let (mut watch, mut census): (Option<Watch>, _) = (None, Census::default());
    while !reactor.is_ended() {
        let now = time::now();
        let mut next = now.plus(BEAT);
        if class.watcher().claim(process::id(), now.0, lives) {
            let watch =
                watch.get_or_insert_with(|| Watch::new(class, found.block, helpers.clone()));
            let lively = now < watch.lively_until() || watch.holds();
            watch.meet(&census.look(
                now,
                if lively { tuning::discovery::LIVELY } else { tuning::discovery::IDLE },
            ));
            if lively {
                census.look_again(now);
            }
            next = next.min(watch.step(watch.len(), &mut census)).min(census.next());
            if watch.is_empty() {
                break;
            }
            let watched = watch.len();
            next = next.min(observer.step(now, watched, std::slice::from_mut(watch)));
            if watch.take_changed() {
                next = now;
            }
        } else {
            watch = None;
        }
        let holds = watch.as_ref().is_some_and(Watch::holds);
        let told: Vec<_> = announced
            .iter()
            .map(Announced::descriptor)
            .chain(census.descriptor(now, holds))
            .collect();
        if reactor.wait(next, &told).contains(&true) {
            census.hurry();
            announced.iter_mut().for_each(Announced::take);
        }
        if let Some(watch) = &mut watch {
            watch.tend();
        }
        if !watch.as_ref().is_some_and(Watch::holds) {
            deadline::disarm();
        }
    }
}

fn show(found: &MappedClass, now: Moment) -> anyhow::Result<()> {
    let rate = |way| {
        let meter = found.class.direction(way);
        (Rate::per_second(meter.recent().rate(now)), Bytes::new(meter.total()))
    };
    let ((reading, read), (writing, written)) = (rate(Direction::Read), rate(Direction::Write));
    say!("reading {reading}, writing {writing}; read {read}, written {written}")?;
    Ok(())
}
