//! What regulators tell others about their jobs: one small file each, for `discnice status`.
//!
//! A file is replaced by renaming, so it is always whole, and removed by its regulator. The file of
//! a killed regulator is removed by the next program that looks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use discnice_processes::tree::Process;
use discnice_sys::procfs;
use serde::{Deserialize, Serialize};

use crate::control::summary::Summary;

/// Notices that are kept; the first ones say most.
const NOTICES: usize = 20;

/// One job that is regulated from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The job's first process.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The regulator's process.
    pub regulator: u32,
    /// When that started, in clock ticks since boot.
    regulator_started: u64,
    /// Its priority relative to other polite jobs.
    #[serde(default)]
    pub priority: u32,
    /// The phase that it is in, as it was told; of `moving` a digit for each metric, 1 if it rises. Empty without phases.
    #[serde(default)]
    pub phase: String,
    /// Set while the job is stopped because its progress was poor.
    pub suspended: bool,
    /// How often the job was stopped.
    pub suspensions: u64,
    /// How long the job was stopped in all, in seconds.
    pub suspended_seconds: f64,
    /// How often it was let on because others waited for a lock that it holds.
    #[serde(default)]
    pub let_on: u64,
    /// How often it was let on because nothing on this machine slowed it down.
    #[serde(default)]
    pub elsewhere: u64,
    /// What went wrong without stopping the job.
    pub notices: Vec<String>,
}

/// The report of a regulator, in its file.
#[derive(Debug)]
pub struct Board {
    file: Option<PathBuf>,
    report: Report,
}

impl Board {
    /// A place for the job of `process`, below `directory`; `None` keeps everything to itself.
    #[must_use]
    pub fn new(directory: Option<&Path>, process: Process) -> Self {
        let regulator = std::process::id();
        let file = directory.map(|directory| place(directory).join(format!("{regulator}.json")));
        let name = fs::read_to_string(format!("/proc/{}/comm", process.id())).unwrap_or_default();
        let report = Report {
            process: process.id(),
            name: name.trim_end().into(),
            regulator,
            regulator_started: procfs::stat(regulator).map_or(0, |stat| stat.started),
            ..Report::default()
        };
        let board = Self { file, report };
        board.post();
        board
    }

    /// Notes that something went wrong.
    pub fn notice(&mut self, line: &str) {
        if self.report.notices.len() < NOTICES {
            self.report.notices.push(line.into());
            self.post();
        }
    }

    /// Tells the job's priority.
    pub fn set_priority(&mut self, priority: u32) {
        self.report.priority = priority;
        self.post();
    }

    /// Tells which phase the job is in.
    pub fn set_phase(&mut self, phase: &str) {
        if self.report.phase != phase {
            phase.clone_into(&mut self.report.phase);
            self.post();
        }
    }

    /// Tells where the job stands.
    pub fn update(&mut self, suspended: bool, so_far: &Summary) {
        self.report.suspended = suspended;
        self.report.suspensions = so_far.suspensions;
        self.report.suspended_seconds = so_far.suspended.as_secs_f64();
        self.report.let_on = so_far.let_on;
        self.report.elsewhere = so_far.elsewhere;
        self.post();
    }

    /// Writes the report. A regulator that cannot do so regulates all the same.
    fn post(&self) {
        let Some(file) = &self.file else { return };
        let _ = write(file, &self.report);
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

fn place(directory: &Path) -> PathBuf {
    directory.join("polite")
}

fn write(file: &Path, report: &Report) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let draft = file.with_extension("draft");
    fs::write(&draft, serde_json::to_vec(report)?)?;
    fs::rename(draft, file)
}

/// All jobs that are regulated from outside, as told below `directory`.
#[must_use]
pub fn posted(directory: &Path) -> Vec<Report> {
    let entries = fs::read_dir(place(directory)).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    // A draft belongs to a process that is about to rename it.
    let files = files.filter(|file| file.extension().is_some_and(|kind| kind == "json"));
    let mut reports: Vec<Report> = files.filter_map(|file| living(&file)).collect();
    reports.sort_by_key(|report| report.process);
    reports
}

/// Returns the report in a file, unless its regulator was killed.
fn living(file: &Path) -> Option<Report> {
    let text = fs::read(file).ok()?;
    let told: Option<Report> = serde_json::from_slice(&text).ok();
    let lives = |report: &Report| procfs::is_same(report.regulator, report.regulator_started);
    let found = told.filter(lives);
    if found.is_none() {
        let _ = fs::remove_file(file);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_while_the_regulator_lives() {
        let folder = tempfile::tempdir().unwrap();
        let job = Process::find(std::process::id()).unwrap();
        let mut board = Board::new(Some(folder.path()), job);
        board.notice("metric lines:log: no such file");
        board.update(true, &Summary { suspensions: 3, let_on: 2, ..Summary::default() });
        let told = posted(folder.path());
        assert_eq!(told.len(), 1);
        assert!(told[0].suspended && told[0].suspensions == 3 && told[0].notices.len() == 1);
        assert_eq!(told[0].let_on, 2);
        drop(board);
        assert!(posted(folder.path()).is_empty());
    }

    #[test]
    fn what_the_killed_left_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let job = Process::find(std::process::id()).unwrap();
        let mut board = Board::new(Some(folder.path()), job);
        board.report.regulator_started += 1;
        board.update(true, &Summary::default());
        fs::write(place(folder.path()).join("7.json"), "{torn").unwrap();
        assert!(posted(folder.path()).is_empty());
        assert_eq!(fs::read_dir(place(folder.path())).unwrap().count(), 0);
    }
}
