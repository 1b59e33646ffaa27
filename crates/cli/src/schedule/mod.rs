//! When a job runs, and until when: what `run` and `attach` do for a job while they stay beside it.
//!
//! - `ask`: `--ask`, a question on the desktop, through the message `bus`;
//! - `only`: `--only-when`, with `conditions` and the `sources` that tell of the machine, of which the bus is one;
//! - `guardian`: lets a job that stands go on if this process is killed;
//! - `until`: what happens at the time of `--until`;
//! - `finish`: the rate for `--finish-by`, and `usual`, which gives the class its own back;
//! - `moment`, `calendar`: times as people type them;
//! - `told`: all of that in words;
//! - `job`: what it is done to.

mod ask;
mod bus;
mod calendar;
mod conditions;
mod finish;
mod guardian;
mod job;
mod only;
mod sources;
mod told;
mod until;
mod usual;
mod wall_time;

use anyhow::bail;
use clap::Args;
use discnice_ledger::policy::{Limits, Resource};

pub use job::Job;

use crate::classes::MappedClass;
use crate::config;
use ask::Ask;
use conditions::OnlyWhen;
use finish::Finish;
use only::Only;
use until::{Then, Until};
use wall_time::WallTime;

const WHEN: &str = "When";

/// When it runs.
#[derive(Debug, Clone, Default, Args)]
pub struct ScheduleArgs {
    /// Run only while all of these conditions hold, and pause otherwise: ac (mains power), unmetered (network), idle or
    /// idle=10m, 22:00-06:00, load<2, cmd:COMMAND (exit status 0); DiscNice stays as the parent
    #[arg(long, value_name = "COND[,COND...]", help_heading = WHEN, hide_short_help = true)]
    only_when: Option<OnlyWhen>,
    /// Run until this time, such as 06:00, "2026-11-27 06:00" or +2h; DiscNice stays as the parent
    #[arg(long, value_name = "TIME", help_heading = WHEN, hide_short_help = true)]
    until: Option<WallTime>,
    /// What happens at the time of --until
    #[arg(long, value_enum, value_name = "WHAT", requires = "until", default_value_t, help_heading = WHEN, hide_short_help = true)]
    then: Then,
    /// Run at the lowest rate that finishes the job by this time, but never above the limit --disk, which may also come
    /// from a class, a preset or config.toml. How much is left to do is derived from --disk-total, or from the position in
    /// the largest file that the job reads. DiscNice stays as the parent
    #[arg(long, value_name = "TIME", help_heading = WHEN, hide_short_help = true)]
    finish_by: Option<WallTime>,
    /// Once --disk-total is used up, ask by a desktop notification whether to allow as much again, lift the bound, or end
    /// the job; DiscNice stays as the parent
    #[arg(long, requires = "disk_total", help_heading = WHEN, hide_short_help = true)]
    ask: bool,
}

impl ScheduleArgs {
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        let is_timed = self.until.is_some() || self.finish_by.is_some();
        !is_timed && self.only_when.is_none() && !self.ask
    }

    /// Refuses what cannot be done to a job in this class, if it has a name.
    ///
    /// # Errors
    /// What cannot be done.
    pub fn check(&self, class: Option<&str>) -> anyhow::Result<()> {
        if let Some(name) = class
            && self.until.is_some()
            && self.then == Then::Continue
        {
            bail!(
                "--then continue would lift the limits of all of class {name}; leave out --class"
            );
        }
        Ok(())
    }

    /// What is to be done for a job of this class. `has_own`: whether the class has a limit that was given for this job or
    /// class, or in the configuration, not the built-in default. Only --finish-by asks for that.
    pub fn begin(&self, found: &MappedClass, has_own: impl FnOnce() -> bool) -> Schedule {
        let finish = |by| {
            let usual = found.class.total().threshold();
            let most = if has_own() {
                usual
            } else {
                config::bounded(&found.name(), found.is_automatic(), Limits::UNLIMITED)
                    .rate(Resource::Total)
            };
            Finish::new(*found, by, most, usual)
        };
        Schedule {
            only: self.only_when.as_ref().map(|wanted| Only::begin(wanted, found)),
            until: self.until.map(|at| Until { at, then: self.then, is_over: false }),
            finish: self.finish_by.map(finish),
            ask: self.ask.then(|| Ask::begin(found)),
        }
    }
}

/// What is to be done for a job while it runs.
#[derive(Debug)]
pub struct Schedule {
    only: Option<Only>,
    until: Option<Until>,
    finish: Option<Finish>,
    ask: Option<Ask>,
}

impl Schedule {
    /// Does what is due.
    pub fn look(&mut self, job: &Job) {
        if let Some(until) = &mut self.until {
            until.look(job);
        }
        let over = self.until.filter(|until| until.is_over);
        match over {
            Some(until) => self.only.take().into_iter().for_each(|only| only.end(job, until.then)),
            None => self.only.iter_mut().for_each(|only| only.look(job)),
        }
        if let Some(finish) = self.finish.as_mut().filter(|_| over.is_none()) {
            finish.look(job);
        }
        if let Some(ask) = &mut self.ask {
            ask.look(job);
        }
    }

    /// The job has ended.
    pub fn end(&mut self, found: &MappedClass) {
        self.only.iter_mut().for_each(|only| only.over(found));
        if let Some(finish) = &self.finish {
            finish.end(found);
        }
    }
}
