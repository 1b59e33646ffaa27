//! A foreground program beside a background rsync: DiscNice sections 2.1 and 6.5, tables 1, 2, 9
//! and 10, with what a user would try instead of DiscNice in the same rounds.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use discnice_units::Bytes;

use super::peer::Peer;
use super::{beside, contention_study};
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::job::Job;
use crate::lab::{Lab, files};

/// DiscNice section 2.1: rsync backs up 600 MB.
const BACKUP_BYTES: u64 = 600_000_000;
/// As many pairs as a median needs.
const ROUNDS: u32 = 5;
/// As many as tell a peer from a neighbour, in a quick run.
const NEAR: u32 = 2;
/// So long the background runs before the foreground starts.
const HEAD_START: Duration = Duration::from_secs(1);

/// The two foregrounds of section 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// Reads a 200 MB file from begin to end.
    Sequential,
    /// Unpacks a 50 MB archive.
    Tar,
}

impl Foreground {
    /// Disk bytes that it must read: what the background read is the device's count less these.
    const fn bytes(self) -> u64 {
        match self {
            Self::Sequential => 200_000_000,
            Self::Tar => 50_000_000,
        }
    }

    /// How often a quick run measures this case: goals are judged by some, and others come near what is judged.
    fn quick_rounds(self, peer: Peer) -> u32 {
        match peer {
            Peer::Alone | Peer::Discnice(1) | Peer::Polite => ROUNDS,
            Peer::OwnLimit(1) | Peer::Cgroup(1) => NEAR,
            // It moves a piece or two, or three: one round does not tell how many.
            Peer::Idle("mq-deadline") => NEAR,
            // It leaves the disk to itself, which beside tar takes a fifth of the time to see.
            Peer::CpuLimit(_) if self == Self::Sequential => 0,
            _ => 1,
        }
    }

    /// What it reads.
    fn input(self, lab: &Lab) -> PathBuf {
        lab.folder().join(match self {
            Self::Sequential => "foreground",
            Self::Tar => "archive.tar",
        })
    }

    fn prepare(self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Self::Sequential => files::make(lab, &self.input(lab), self.bytes()),
            Self::Tar => files::make_archive(lab, &self.input(lab), self.bytes()),
        }
    }

    /// Undoes what the last run made.
    fn reset(self, lab: &Lab) -> anyhow::Result<()> {
        if self == Self::Sequential {
            return Ok(());
        }
        files::empty_folder(lab, &lab.folder().join("unpacked"))
    }

    fn command(self, lab: &Lab) -> Command {
        match self {
            Self::Sequential => {
                let mut command = lab.workload("sequential");
                command.arg("foreground");
                command
            }
            Self::Tar => {
                let mut command = lab.command("tar");
                command.args(["--extract", "--file", "archive.tar", "--directory", "unpacked"]);
                command
            }
        }
    }
}

/// One foreground beside each of several backgrounds.
pub struct Contention {
    /// What is measured.
    pub foreground: Foreground,
    /// Beside what.
    pub peers: &'static [Peer],
}

impl Experiment for Contention {
    fn requirements(&self) -> Vec<Requirement> {
        vec![
            Requirement::Disk,
            Requirement::Program("rsync"),
            Requirement::Program("nice"),
            Requirement::Program("ionice"),
            Requirement::Program("tar"),
            Requirement::Memory(Bytes::new(BACKUP_BYTES * 3)),
        ]
    }

    fn cases(&self, _scale: Scale) -> (Vec<(String, f64)>, u32) {
        // About the times of the papers' disk, and a second for the background's start.
        let seconds = |peer: &Peer| match peer {
            Peer::Alone => 4.5,
            peer if peer.is_slow() => 17.0,
            _ => 7.0,
        };
        (self.peers.iter().map(|peer| (peer.case(), seconds(peer))).collect(), ROUNDS)
    }

    fn rounds(&self, case: &str, scale: Scale, all: u32) -> u32 {
        let quick = self.peer(case).map_or(1, |peer| self.foreground.quick_rounds(peer));
        if scale.quick { all.min(quick) } else { all }
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        self.peer(case).ok()?.lack(lab)
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        self.foreground.prepare(lab)?;
        let backup = lab.folder().join("backup");
        fs::create_dir(&backup).context("cannot make the folder to back up")?;
        files::give(lab, &backup)?;
        files::make(lab, &backup.join("file"), BACKUP_BYTES)?;
        self.make_resident(lab)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        lab.in_no_time(|| self.foreground.reset(lab))?;
        lab.cold()?;
        let background = self.peer(&step.case)?.start(lab, &lab.folder().join("backup"))?;
        std::thread::sleep(HEAD_START);
        let mut foreground = self.foreground.command(lab);
        let (mut sample, courses) = beside::measure(lab, step, &mut foreground, background)?;
        let values = &mut sample.values;
        // Many small requests cost the foreground more than few large ones.
        values.insert("device requests".into(), courses.total("requests"));
        values.insert("own cpu seconds".into(), courses.total("own cpu"));
        values.insert("system cpu seconds".into(), courses.total("cpu"));
        for name in ["device", "foreground", "background", "own cpu"] {
            sample.series.insert(name.into(), courses.rate(name, 1.0));
        }
        Ok(sample)
    }

    fn study(&self, record: &Record) -> Study {
        contention_study::times(record)
    }
}

impl Contention {
    /// Has the programs and DiscNice in memory while the lab is there.
    fn make_resident(&self, lab: &Lab) -> anyhow::Result<()> {
        self.foreground.reset(lab)?;
        let mut copy = lab.command("rsync");
        copy.arg(self.foreground.input(lab)).arg(lab.memory().join("copy"));
        for command in [self.foreground.command(lab), copy] {
            let mut command = lab.limited(&["--disk", "unlimited"], &command)?;
            lab.make_resident(Job::start(&mut command)?)?;
        }
        fs::remove_file(lab.memory().join("copy")).context("cannot remove a copy")
    }

    fn peer(&self, case: &str) -> anyhow::Result<Peer> {
        let found = self.peers.iter().copied().find(|peer| peer.case() == case);
        found.with_context(|| format!("no case {case}"))
    }
}
