//! The command line.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Args, Parser, Subcommand};

use crate::bench::BenchCommand;
use crate::disk::DiskCommand;
use crate::frame::experiment::{Body, Entry, Scale};
use crate::frame::record::Archive;
use crate::frame::runner::{self, Run};
use crate::lab::left_behind;
use crate::report::{self, Page};
use crate::site::Site;
use crate::workload::Workload;
use crate::{experiments, stop, tool};

/// Measure what the papers measured, on this machine
#[derive(Debug, Parser)]
#[command(name = "discnice-eval", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all tables and figures, with what this machine lacks for them
    List {
        #[command(flatten)]
        site: Site,
    },
    /// Measure tables and figures by name (needs root)
    Run {
        /// Names, as `list` prints them
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Measure everything that can be measured here (needs root)
    All {
        #[command(flatten)]
        how: How,
    },
    /// Write report.md, report.html and the plots from stored records, and print the numbers
    Report {
        #[command(flatten)]
        record: RecordDirectory,
    },
    /// Print the verdicts of several runs side by side; fails if they differ
    Compare {
        /// Directories of records
        #[arg(required = true, num_args = 2.., value_name = "DIR")]
        records: Vec<PathBuf>,
    },
    #[command(subcommand)]
    Bench(BenchCommand),
    #[command(subcommand)]
    Disk(DiskCommand),
    #[command(subcommand, hide = true)]
    Workload(Workload),
}

/// How to measure.
#[derive(Debug, Args)]
struct How {
    /// Few repetitions and small files
    #[arg(long)]
    quick: bool,
    /// Measure every case N times [default: as each experiment needs it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Only cases with TEXT in their names, such as `restic`
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    #[command(flatten)]
    record: RecordDirectory,
    #[command(flatten)]
    site: Site,
}

#[derive(Debug, Clone, Args)]
struct RecordDirectory {
    /// Directory of the records [default: eval/results/DATE-HOST]; an unfinished one is resumed
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

impl RecordDirectory {
    fn archive(self) -> anyhow::Result<Archive> {
        if let Some(directory) = self.record {
            return Ok(Archive::new(directory));
        }
        let date = tool::run("date", ["+%Y-%m-%d"])?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .context("cannot read the host's name")?;
        let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let host: String = host.trim().chars().map(safe).collect();
        Ok(Archive::new(PathBuf::from("eval/results").join(format!("{date}-{host}"))))
    }
}

impl Cli {
    /// Does what is asked.
    ///
    /// # Errors
    /// One line for people: what is wrong and what to do.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::List { site } => list(&site),
            Command::Run { names, how } => {
                let all = experiments::all();
                let names = known(&all, &names)?;
                measure(&all, &names, how)
            }
            Command::All { how } => {
                let all = experiments::all();
                let names: Vec<&str> = all.iter().map(|entry| entry.name).collect();
                let archive = how.record.clone().archive()?;
                let result = measure(&all, &names, how);
                // What was measured before a failure or a stop is shown, too.
                let written = report::write(&all, &archive);
                result.and(written)
            }
            Command::Report { record } => write_report(&record.archive()?),
            Command::Compare { records } => compare(records),
            Command::Bench(command) => command.run(),
            Command::Disk(command) => {
                let ends = matches!(command, DiskCommand::Down { .. });
                command.run()?;
                if ends { left_behind::remove() } else { Ok(()) }
            }
            Command::Workload(workload) => workload.run(),
        }
    }
}

fn list(site: &Site) -> anyhow::Result<()> {
    let all = experiments::all();
    for entry in &all {
        let paper = crate::frame::paper::Paper::parse(entry.paper)?;
        println!("{:<24}  {:<46}  {}", entry.name, paper.title, state(&all, entry, site));
    }
    Ok(())
}

fn state(all: &[Entry], entry: &Entry, site: &Site) -> String {
    match &entry.body {
        Body::Missing(reason) => format!("not available: {reason}"),
        Body::Measured(experiment) => match runner::lack(*experiment, site) {
            Some(lack) => format!("not available: {lack}"),
            None => "ready".into(),
        },
        Body::View { of, .. } => {
            let ready = all
                .iter()
                .filter(|other| of.contains(&other.name))
                .any(|other| state(all, other, site) == "ready");
            let words = if ready { "ready" } else { "not available" };
            format!("{words}: shows {}", of.join(", "))
        }
    }
}

fn known<'a>(all: &'a [Entry], names: &[String]) -> anyhow::Result<Vec<&'a str>> {
    let find = |name: &String| match all.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry.name),
        None => bail!("there is no experiment {name}; see: discnice-eval list"),
    };
    names.iter().map(find).collect()
}

fn measure(all: &[Entry], names: &[&str], how: How) -> anyhow::Result<()> {
    stop::on_signals()?;
    let archive = how.record.archive()?;
    let scale = Scale { quick: how.quick, repetitions: how.rounds };
    let plan = Run { site: &how.site, archive: &archive, scale, only: how.only.as_deref() };
    let result = runner::run(&plan, all, names);
    if stop::requested() {
        let directory = archive.directory().display();
        bail!("stopped; the same command resumes what is in {directory}");
    }
    result
}

fn write_report(archive: &Archive) -> anyhow::Result<()> {
    let all = experiments::all();
    report::write(&all, archive)?;
    for entry in &all {
        println!("{}", report::print(&Page::new(entry, archive)?));
    }
    println!("{}", archive.directory().join("report.html").display());
    Ok(())
}

fn compare(records: Vec<PathBuf>) -> anyhow::Result<()> {
    let all = experiments::all();
    let mut runs = Vec::new();
    for directory in records {
        ensure!(directory.is_dir(), "there are no records in {}", directory.display());
        runs.push(report::pages(&all, &Archive::new(directory))?);
    }
    let (text, differing) = report::comparison(&runs);
    print!("{text}");
    ensure!(differing == 0, "{differing} of {} verdicts differ", all.len());
    println!("All {} verdicts are alike.", all.len());
    Ok(())
}
