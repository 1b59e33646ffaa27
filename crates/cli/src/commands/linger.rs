//! `discnice linger`: is it worth to move a job to another machine? (Rate Windows, section 8.)

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use clap::Args;
use discnice_ledger::policy::linger::{Decision, Situation, decide};
use discnice_processes::tree::{Process, Tree};
use discnice_units::{Bytes, Nanos, Rate};
use serde_json::json;

use super::attach::root;
use super::status_polite;
use crate::output::{self, say};

const EXAMPLES: &str = "\
Examples:
  discnice linger --wait --rate 100M 4711 && move-job 4711    moves process 4711 once that is worth it";

/// Tell whether to move a job to another machine or let it linger here
///
/// A machine that has been busy for some time is expected to stay busy for as long again. If the job would get further
/// elsewhere in that time, although it makes no progress while it moves, the answer is `go` (exit status 0), otherwise
/// `stay` (exit status 1).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Linger {
    /// How fast the job's memory could be moved
    #[arg(long, value_name = "RATE", required_unless_present = "moving")]
    rate: Option<Rate>,
    /// What would have to be moved [default: the job's resident memory]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// How long the job would stand still while it moves, in place of --size and --rate
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with_all = ["rate", "size"])]
    moving: Option<Nanos>,
    /// Share of its full speed that it gets here, from 0 to 1 [default: measured, as the share of time for which it ran
    /// when it could have run, not counting the time for which --polite suspended it]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    here: Option<f64>,
    /// Share that it would get elsewhere
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1")]
    there: f64,
    /// For how long this machine has been busy already
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    busy_for: Nanos,
    /// How long the job would still run at full speed, if you know
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    left: Option<Nanos>,
    /// How long to measure
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    watch: Nanos,
    /// Keep watching until moving is worth it (exit status 0) or the job has ended (exit status 1)
    #[arg(long)]
    wait: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The job's processes; their descendants belong to it
    #[arg(value_name = "PID", required = true, allow_negative_numbers = true, value_parser = crate::values::pid)]
    pids: Vec<i32>,
}

/// A job that gets more than this of what it would get elsewhere is not kept from more.
const UNDISTURBED: f64 = 0.9;

impl Linger {
    //= rate-windows/8-linger
    //= rate-windows/8-cycle-stealing
    /// Measures, decides, and tells.
    ///
    /// # Errors
    /// No such process, or what it does cannot be read.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let roots =
            self.pids.iter().map(|&pid| root(pid)).collect::<anyhow::Result<Vec<Process>>>()?;
        ensure!(self.watch.0 > 0, "--watch must be above 0");
        ensure!(
            self.here.is_some() || Path::new("/proc/self/schedstat").exists(),
            "this kernel does not tell for how long processes wait (schedstat); give --here"
        );
        let (mut tree, mut busy_for) = (Tree::new(&roots), self.busy_for);
        loop {
            let begun = Instant::now();
            let Some(here) = self.share(&mut tree) else {
                self.tell_ended()?;
                return Ok(ExitCode::FAILURE);
            };
            if here >= UNDISTURBED * self.there {
                busy_for = Nanos(0);
            } else if self.wait || self.here.is_none() {
                busy_for = busy_for.plus(nanos(begun.elapsed()));
            }
            let moving = self.moving(&tree)?;
            let there = self.there;
            let situation = Situation { here, there, busy_for, moving, left: self.left };
            let decision = decide(&situation);
            if !self.wait || decision.goes() {
                self.tell(&situation, decision)?;
                return Ok(if decision.goes() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
        }
    }

    /// The share of its full speed that the job gets here; `None` if it has ended.
    fn share(&self, tree: &mut Tree) -> Option<f64> {
        tree.refresh();
        if tree.is_empty() {
            return None;
        }
        if let (Some(here), false) = (self.here, self.wait) {
            return Some(here);
        }
        let (begun, before) = (Instant::now(), Ran::of(tree));
        std::thread::sleep(Duration::from_nanos(self.watch.0));
        let measured = Ran::of(tree).share_since(&before, begun.elapsed());
        tree.update();
        (!tree.is_empty()).then_some(self.here.unwrap_or(measured))
    }

    fn moving(&self, tree: &Tree) -> anyhow::Result<Nanos> {
        if let Some(moving) = self.moving {
            return Ok(moving);
        }
        let Some(rate) = self.rate.filter(|rate| !rate.is_unlimited()) else {
            bail!("say how fast the job could be moved: --rate 100M, or --moving SECONDS")
        };
        let resident = || tree.iter().filter_map(|one| discnice_sys::procfs::resident(one.id));
        let pages = || resident().map(|(all, _)| all).sum::<u64>();
        let size =
            self.size.map_or_else(|| pages() * rustix::param::page_size() as u64, Bytes::get);
        Ok(rate.time_for(size))
    }

    fn tell_ended(&self) -> anyhow::Result<()> {
        if self.json {
            output::json(&json!({ "decision": "stay", "reason": "it has ended" }).to_string())?;
        } else {
            say!("ended")?;
        }
        Ok(())
    }

    fn tell(&self, situation: &Situation, decision: Decision) -> anyhow::Result<()> {
        let word = if decision.goes() { "go" } else { "stay" };
        if self.json {
            let told = json!({
                "decision": word,
                "reason": reason(decision),
                "here": situation.here,
                "there": situation.there,
                "busy_for_s": situation.busy_for.as_secs_f64(),
                "moving_s": situation.moving.as_secs_f64(),
                "worth_from_s": decision.worth_from().map(Nanos::as_secs_f64),
            });
            output::json(&told.to_string())?;
            return Ok(());
        }
        let (here, there) = (situation.here * 100.0, situation.there * 100.0);
        let mut line = format!(
            "{word}: {} (here {here:.0} %, elsewhere {there:.0} %, moving takes {}",
            reason(decision),
            situation.moving
        );
        if let Some(age) = decision.worth_from() {
            let _ = write!(line, ", others busy for {}, worth it from {age}", situation.busy_for);
        }
        say!("{line})")?;
        Ok(())
    }
}

/// The reason in words.
const fn reason(decision: Decision) -> &'static str {
    match decision {
        Decision::NoFaster => "it would be no faster elsewhere",
        Decision::EndsSooner => "it ends sooner than it could have moved",
        Decision::Young(_) => "the others may soon be done",
        Decision::Worth(_) => "the others are expected to stay busy for longer than moving takes",
    }
}

/// What all threads of a job did until now.
struct Ran {
    /// On a processor, and waiting for one, in nanoseconds.
    ran: u64,
    waited: u64,
    /// Seconds of suspension by a regulator of its progress, and whether it is suspended now.
    suspended: f64,
    is_suspended: bool,
}

impl Ran {
    fn of(tree: &Tree) -> Self {
        let mut all = Self { ran: 0, waited: 0, suspended: 0.0, is_suspended: false };
        for member in tree.iter() {
            let Ok(threads) = fs::read_dir(format!("/proc/{}/task", member.id)) else { continue };
            for thread in threads.flatten() {
                // One that has ended meanwhile has nothing more to say.
                let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
                    continue;
                };
                let mut numbers =
                    text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
                let (Some(ran), Some(waited)) = (numbers.next(), numbers.next()) else { continue };
                all.ran += ran;
                all.waited += waited;
            }
        }
        for job in status_polite::jobs() {
            if tree.iter().any(|member| member.id == job.process) {
                all.suspended += job.suspended_seconds;
                all.is_suspended |= job.suspended;
            }
        }
        all
    }

    /// The share of the time in which the job could have run that it did run.
    fn share_since(&self, before: &Self, elapsed: Duration) -> f64 {
        let ran = self.ran.saturating_sub(before.ran) as f64;
        let waited = self.waited.saturating_sub(before.waited) as f64;
        let of_processor = if ran + waited > 0.0 { ran / (ran + waited) } else { 1.0 };
        // A suspension is told when it ends.
        let suspended = if self.is_suspended && before.is_suspended {
            1.0
        } else {
            (self.suspended - before.suspended).max(0.0) / elapsed.as_secs_f64()
        };
        of_processor * (1.0 - suspended.min(1.0))
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn seconds(text: &str) -> Result<Nanos, String> {
    let number = text.parse::<f64>().ok().filter(|value| (0.0..=1e9).contains(value));
    let number = number.ok_or("give a number of seconds, as 30 or 0.5")?;
    Ok(Nanos((number * Nanos::SECOND.0 as f64) as u64))
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
    number.ok_or_else(|| "give a share from 0 to 1, as 0.25".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(ran: u64, waited: u64, suspended: f64, is_suspended: bool) -> Ran {
        Ran { ran, waited, suspended, is_suspended }
    }

    #[test]
    fn waiting_and_suspensions_count() {
        let second = Duration::from_secs(1);
        let nothing = ran(5, 5, 2.0, false);
        assert_eq!(ran(5, 5, 2.0, false).share_since(&nothing, second), 1.0, "it sleeps by itself");
        assert_eq!(ran(30, 80, 2.0, false).share_since(&nothing, second), 0.25);
        assert_eq!(ran(55, 55, 2.5, false).share_since(&nothing, second), 0.25);
        assert_eq!(ran(5, 5, 9.0, false).share_since(&nothing, second), 0.0);
        let stopped = ran(5, 5, 2.0, true);
        assert_eq!(ran(5, 5, 2.0, true).share_since(&stopped, second), 0.0);
    }
}
