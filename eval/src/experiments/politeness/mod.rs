//! Every foreground beside every background under every treatment: what a foreground notices of a job, and what
//! that leaves to the job.
//!
//! - `foreground`, `background`: the programs, none of them ours but those that only ask at regular times; `trees`:
//!   what they work on;
//! - `case`: the cells of the table;
//! - `passes`: lets a background run again and again with nothing in the page cache;
//! - `study`: slowdowns, the heat maps and the fronts.

mod background;
mod case;
mod foreground;
mod passes;
mod study;
#[cfg(test)]
mod tests;
mod trees;

use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;

use anyhow::Context;
use discnice_units::Bytes;

use super::beside;
use super::peer::Peer;
use crate::disk::ProfileName;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::workload::paced;
use case::Case;
use foreground::Foreground;
use passes::Passes;

/// So long a background runs before the foreground starts.
const HEAD_START: Duration = Duration::from_secs(2);
/// The disk is made of memory, and so is what backups write.
const MEMORY: Bytes = Bytes::new(6_000_000_000);
/// Rounds of a foreground alone, which all of its cases are compared with; and of the others.
const ROUNDS_ALONE: u32 = 3;
const ROUNDS: u32 = 3;

/// The table on one kind of disk.
pub struct Politeness {
    /// The disk.
    pub disk: ProfileName,
}

impl Experiment for Politeness {
    fn requirements(&self) -> Vec<Requirement> {
        let programs = ["python3", "sqlite3", "git", "rsync", "tar", "ionice"];
        let disk =
            [Requirement::DiskOf(self.disk), Requirement::Discnice, Requirement::Memory(MEMORY)];
        disk.into_iter().chain(programs.map(Requirement::Program)).collect()
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        // The head start, and unmounting the disk before.
        let beside = HEAD_START.as_secs_f64() + 2.0;
        let seconds = |case: &Case| {
            let slower = match case.beside {
                Some((_, Peer::Polite)) | None => 1.0,
                Some(_) if case.foreground.is_paced() => 1.0,
                Some(_) => 3.0,
            };
            beside + slower * case.foreground.seconds(scale)
        };
        let cases = Case::all(scale).into_iter().map(|case| (case.name(), seconds(&case)));
        (cases.collect(), scale.rounds(ROUNDS, ROUNDS_ALONE))
    }

    fn rounds(&self, case: &str, scale: Scale, all: u32) -> u32 {
        let is_alone = case.ends_with(" alone");
        if scale.quick && !is_alone { 1 } else { all }
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        let (background, peer) = Case::find(case).ok()?.beside?;
        peer.lack(lab).or_else(|| background.lack(lab))
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        for foreground in Foreground::ALL {
            foreground.prepare(lab)?;
        }
        background::prepare(lab)?;
        for case in Case::all(scale).into_iter().filter(|case| case.beside.is_none()) {
            lab.make_resident(Job::start(&mut case.foreground.command(lab, scale))?)?;
        }
        lab.make_resident(Job::start(&mut lab.limited(&[], &lab.command("true"))?)?)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let case = Case::find(&step.case)?;
        lab.in_no_time(|| background::reset(lab))?;
        lab.cold()?;
        let peer = case.beside.map_or(Peer::Alone, |(_, peer)| peer);
        peer.schedule(lab, self.scheduler())?;
        let passes = Passes::start(lab.memory(), lab.disk.owner)?;
        let background = match case.beside {
            Some((background, peer)) => Some(background.start(lab, peer)?),
            None => None,
        };
        std::thread::sleep(HEAD_START);
        let mut printed = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut foreground = case.foreground.command(lab, step.scale);
        foreground.stdout(printed.try_clone()?);
        let (mut sample, _) = beside::measure(lab, step, &mut foreground, background)?;
        drop(passes);
        let waits = match case.foreground.is_paced() {
            true => paced::parse(&whole(&mut printed)?)?,
            false => {
                sample.values.get("seconds").map(|seconds| (0.0, *seconds)).into_iter().collect()
            }
        };
        sample.series.insert("waits".into(), waits);
        Ok(sample)
    }

    fn study(&self, record: &Record) -> Study {
        study::study(record)
    }
}

impl Politeness {
    /// The kernel's own choice for such a disk.
    const fn scheduler(&self) -> &'static str {
        if self.disk.rotational() { "mq-deadline" } else { "none" }
    }
}

/// What was written to a file.
fn whole(file: &mut File) -> anyhow::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}
