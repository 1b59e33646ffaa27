//! A foreground beside a background that is regulated by its own progress: MS Manners sections 9.2
//! to 9.4, figures 3 to 8.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::manners_case as case;
use super::manners_study;
use crate::disk;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::job::Job;
use crate::lab::sampler::{Courses, Sampler};
use crate::lab::{Lab, files};
use crate::tool;

const MEGABYTE: u64 = 1_000_000;
/// What the background reads.
const BACKGROUND_BYTES: u64 = 400 * MEGABYTE;
const PARTS: usize = 40;
/// So long the background runs before the foreground starts (30 s in the paper).
const HEAD_START: Duration = Duration::from_secs(3);
/// Files of 8 MB in the package.
const PACKAGE_FILES: u64 = 40;
/// So long a regulated background is awaited after the foreground's end: on a machine that never
/// comes to rest it may stay suspended for minutes.
const PATIENCE: Duration = Duration::from_secs(20);
/// No case takes longer.
const LONGEST: Duration = Duration::from_secs(90);
const ROWS: u32 = 60_000;
/// Disk and scheduler as in all cases that name none.
const SCHEDULER: &str = "mq-deadline";

/// The foreground and background that compete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// Figure 3: random queries of a database (sqlite3) beside a defragmenter (dd, which reads).
    Database,
    /// Figure 4: unpacking (tar) beside a search for duplicates (md5sum).
    Installation,
}

impl Pair {
    fn prepare(self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Self::Database => make_database(lab),
            Self::Installation => make_package(lab),
        }
    }

    fn foreground(self, lab: &Lab) -> Command {
        match self {
            Self::Database => {
                let mut command = lab.command("sqlite3");
                let query = format!(
                    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 900) \
                     SELECT count((SELECT length(x) FROM t WHERE id = n * 7919 % {ROWS})) FROM c"
                );
                command.args(["database", &query]);
                command
            }
            Self::Installation => {
                let mut command = lab.command("tar");
                command.args(["--extract", "--file", "archive.tar", "--directory", "unpacked"]);
                command
            }
        }
    }

    fn background(self, lab: &Lab) -> Command {
        let mut command = lab.command("sh");
        command.arg("-c");
        command.arg(match self {
            Self::Database => "for f in background/*; do dd if=$f of=/dev/null bs=64k; done",
            Self::Installation => "md5sum background/*",
        });
        command
    }
}

/// An archive of few large files: of many small ones the journal would be most of the work.
fn make_package(lab: &Lab) -> anyhow::Result<()> {
    let source = lab.memory().join("package");
    files::empty_folder(lab, &source)?;
    for number in 0..PACKAGE_FILES {
        files::make(lab, &source.join(format!("file-{number:02}")), 8 * MEGABYTE)?;
    }
    let archive = lab.folder().join("archive.tar");
    let words: [&OsStr; 6] = [
        "--create".as_ref(),
        "--file".as_ref(),
        archive.as_os_str(),
        "--directory".as_ref(),
        source.as_os_str(),
        ".".as_ref(),
    ];
    tool::run("tar", words)?;
    fs::remove_dir_all(source).context("cannot remove what was packed")?;
    files::give(lab, &archive)
}

/// Rows of 4000 bytes, each on a page of its own.
fn make_database(lab: &Lab) -> anyhow::Result<()> {
    let file = lab.folder().join("database");
    let script = format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
         CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB); \
         WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c LIMIT {ROWS}) \
         INSERT INTO t SELECT n, randomblob(4000) FROM c"
    );
    tool::run("sqlite3", [file.as_os_str(), script.as_ref()])?;
    files::give(lab, &file)
}

/// One pair in all cases.
pub struct Manners {
    /// Which.
    pub pair: Pair,
}

impl Experiment for Manners {
    fn requirements(&self) -> Vec<Requirement> {
        let program = if self.pair == Pair::Database { "sqlite3" } else { "md5sum" };
        vec![Requirement::Disk, Requirement::Discnice, Requirement::Program(program)]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = [
            (case::REGULATED, 9.0),
            (case::FOREGROUND, 9.0),
            (case::POLITE, 22.0),
            (case::BOTH, 20.0),
            (case::BACKGROUND, 9.0),
            (case::NICE, 20.0),
        ];
        (
            cases.map(|(case, seconds)| (case.to_owned(), seconds)).into(),
            scale.rounds(5, if self.pair == Pair::Database { 3 } else { 1 }),
        )
    }

    fn rounds(&self, name: &str, scale: Scale, all: u32) -> u32 {
        let quick = match name {
            // One that stands still once for whatever the machine does is not to decide.
            case::REGULATED | case::BACKGROUND | case::FOREGROUND | case::POLITE => 2,
            _ => 1,
        };
        if scale.quick { all.min(quick) } else { all }
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        let folder = lab.folder().join("background");
        fs::create_dir(&folder).context("cannot make a folder")?;
        files::give(lab, &folder)?;
        for part in 0..PARTS {
            let file = folder.join(format!("part-{part:02}"));
            files::make(lab, &file, BACKGROUND_BYTES / PARTS as u64)?;
        }
        self.pair.prepare(lab)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        lab.in_no_time(|| files::empty_folder(lab, &lab.folder().join("unpacked")))?;
        disk::set_scheduler(lab.device()?, SCHEDULER)?;
        lab.cold()?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        if step.case == case::FOREGROUND {
            let job = Job::start(&mut self.pair.foreground(lab))?;
            sample.commands.push(job.words().to_owned());
            sample.values.insert("foreground seconds".into(), job.finish()?);
            return Ok(sample);
        }
        if step.case == case::POLITE {
            self.calibrate(lab)?;
        }
        let background = Job::start(&mut self.background(lab, &step.case)?)?;
        sample.commands.push(background.words().to_owned());
        let groups = vec![("background", background.group())];
        let sampler = Sampler::start(lab.device()?.to_owned(), groups)?;
        let begin = Instant::now();
        let until = AtomicU64::new(LONGEST.as_secs());
        let (own, other) = std::thread::scope(|scope| {
            let late = || begin.elapsed().as_secs() >= until.load(Ordering::SeqCst);
            let waiter = scope.spawn(move || background.finish_unless(late));
            let other = if step.case.starts_with(case::BOTH) {
                self.beside(lab, begin, &mut sample)
            } else {
                Ok(())
            };
            if step.case == case::POLITE {
                until.store((begin.elapsed() + PATIENCE).as_secs(), Ordering::SeqCst);
            }
            (waiter.join().map_err(|_| anyhow!("a waiting thread died")), other)
        });
        let courses = sampler.finish()?;
        other?;
        match own?? {
            Some(seconds) => sample.values.insert("background seconds".into(), seconds),
            None => sample.values.insert(case::GIVEN_UP.into(), begin.elapsed().as_secs_f64()),
        };
        keep(&mut sample, &courses);
        if step.case == case::REGULATED {
            fs::write(calibrated(lab), "").context("cannot note that targets are known")?;
        }
        Ok(sample)
    }

    fn study(&self, record: &Record) -> Study {
        manners_study::times(record)
    }
}

impl Manners {
    fn background(&self, lab: &Lab, name: &str) -> anyhow::Result<Command> {
        let plain = self.pair.background(lab);
        match name {
            case::REGULATED | case::POLITE => {
                // It is calibrated on an idle machine before, as section 9.1 says.
                lab.limited(&["--polite", "--no-probation"], &plain)
            }
            case::NICE => {
                let mut command = lab.command("nice");
                command.args(["-n", "19"]).arg(plain.get_program()).args(plain.get_args());
                Ok(command)
            }
            _ => Ok(plain),
        }
    }

    /// Lets the background learn its targets alone, if a resumed run has not done so yet.
    fn calibrate(&self, lab: &Lab) -> anyhow::Result<()> {
        if calibrated(lab).exists() {
            return Ok(());
        }
        let begin = Instant::now();
        let job = Job::start(&mut self.background(lab, case::REGULATED)?)?;
        job.finish_unless(|| begin.elapsed() > LONGEST)?;
        fs::write(calibrated(lab), "").context("cannot note that targets are known")?;
        lab.cold()
    }

    /// Runs the foreground beside the background, and notes when.
    fn beside(&self, lab: &Lab, begin: Instant, sample: &mut Sample) -> anyhow::Result<()> {
        std::thread::sleep(HEAD_START);
        let from = begin.elapsed().as_secs_f64();
        let job = Job::start(&mut self.pair.foreground(lab))?;
        sample.commands.push(job.words().to_owned());
        sample.values.insert("foreground seconds".into(), job.finish()?);
        sample.values.insert("begin".into(), from);
        sample.values.insert("end".into(), begin.elapsed().as_secs_f64());
        Ok(())
    }
}

/// There once targets were learned; they go with it.
fn calibrated(lab: &Lab) -> PathBuf {
    lab.memory().join("calibrated")
}

fn keep(sample: &mut Sample, courses: &Courses) {
    for name in ["device", "background"] {
        sample.series.insert(name.into(), courses.rate(name, 0.5));
    }
}
