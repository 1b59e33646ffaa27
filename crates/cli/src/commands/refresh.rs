//! `discnice refresh`: rewrites a directory in layout order (gray-box paper, section 4.2.1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::{self, replace_line, say, tell};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use discnice_graybox::fldc::refresh::worth;
use discnice_graybox::fldc::refresh::{Options, RefreshError, Report, Survey, refresh};
use discnice_graybox::input::{reason, shown};
use discnice_profile::{FigureName, Profile};
use discnice_units::{Bytes, Nanos};

use super::refresh_worth::History;

const EXAMPLES: &str = "\
Examples:
  discnice refresh --dry-run Mail    what it would gain
  discnice refresh Mail              rewrite its files in the order in which they are read
  discnice refresh --when-worth Mail the same, once readings have lost more time than that takes";

/// Rewrite a directory so that its files lie in one row on the disk, small files first
///
/// The directory is complete at every moment: files are copied aside, written to the disk,
/// compared, and each is exchanged for its copy in one step while no process has it open. Files in
/// use are left as they are. Whatever an interrupted refresh has left is cleared up by the next.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Refresh {
    /// Only show how the files lie and what may be gained
    #[arg(long)]
    dry_run: bool,
    /// Also files with other hard links outside, which are separated, and files of which the file
    /// system does not tell whether they are in use
    #[arg(long)]
    force: bool,
    /// File with paths below DIR, one a line, in the order wanted
    #[arg(long, value_name = "LIST")]
    order: Option<PathBuf>,
    /// Only if it is worth it: look how the files lie, add up over all looks what readings have lost by it, and rewrite
    /// once that is more than a rewriting takes; for a timer, such as discnice-refresh@.timer
    #[arg(long)]
    when_worth: bool,
    /// How often a day all files are read, for --when-worth
    #[arg(long, value_name = "N", requires = "when_worth", default_value_t = 1.0, value_parser = readings)]
    reads: f64,
    /// Directory to rewrite, with all that is in it
    dir: PathBuf,
}

/// How often files are read in a day.
fn readings(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.001..=100_000.0).contains(number));
    number.ok_or_else(|| "give a number from 0.001 to 100000, as 0.14 for once a week".to_owned())
}

/// Exit status if nothing was done.
const EXIT_OURS: u8 = 125;

/// Members named of those that are left as they are.
const NAMED: usize = 5;

/// The disk that the time is estimated for.
struct Disk {
    figures: worth::Disk,
    name: &'static str,
}

impl Disk {
    /// As measured for the host profile, else a common one with 7200 turns a minute.
    fn below(dir: &Path) -> Self {
        let known = || {
            let profile = Profile::load().ok()?;
            let dev = std::fs::metadata(dir).ok()?.dev();
            let figures = worth::Disk {
                seek_seconds: profile.device(FigureName::Seek, dev)? / 1e9,
                bytes_per_second: profile.device(FigureName::SequentialRead, dev)?,
            };
            Some(Self { figures, name: "this disk" })
        };
        known().unwrap_or(Self {
            figures: worth::Disk { seek_seconds: 0.008, bytes_per_second: 150e6 },
            name: "a turning disk",
        })
    }

    fn describe(&self, survey: &Survey) -> String {
        let time = Nanos((self.figures.seconds(survey) * 1e9) as u64);
        format!(
            "{} files in {} pieces, {} seeks to read all, about {time} on {}",
            survey.files, survey.extents, survey.seeks, self.name
        )
    }
}

/// The lines of a file, which may be any bytes.
fn read_list(path: &Path) -> Result<Vec<OsString>> {
    let bytes = std::fs::read(path).map_err(|error| {
        anyhow!(
            "cannot read the list {}: {}; give a file with one name a line",
            shown(path),
            reason(&error)
        )
    })?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| OsString::from_vec(line.to_vec())).collect())
}

impl Refresh {
    /// Refreshes; 125 if it was refused or failed, and 1 if something was kept that another program
    /// had changed.
    ///
    /// # Errors
    /// An unreadable list.
    pub fn run(self) -> Result<ExitCode> {
        let order = match &self.order {
            None => Vec::new(),
            Some(path) => read_list(path)?,
        };
        let options = Options { dry_run: self.dry_run, force: self.force, order: &order };
        if self.when_worth {
            return self.run_when_worth(&options);
        }
        self.refresh(&options).map(|(status, _)| status)
    }

    /// Refreshes, and tells; the report if that was done.
    fn refresh(&self, options: &Options<'_>) -> Result<(ExitCode, Option<Report>)> {
        let visible = output::is_watched();
        let mut last = String::new();
        let result = refresh(&self.dir, options, &mut |step, done, total| {
            if visible {
                show_progress(&mut last, step, done, total);
            }
        });
        if visible && !last.is_empty() {
            replace_line("");
        }
        match result {
            Ok(report) => {
                self.tell(&report)?;
                let status = if report.kept { ExitCode::FAILURE } else { ExitCode::SUCCESS };
                Ok((status, Some(report)))
            }
            Err(error) => {
                self.complain(&error);
                Ok((ExitCode::from(EXIT_OURS), None))
            }
        }
    }

    /// Looks, keeps what was seen, and refreshes if that is worth it.
    fn run_when_worth(&self, options: &Options<'_>) -> Result<ExitCode> {
        let look = Options { dry_run: true, ..*options };
        let before = match refresh(&self.dir, &look, &mut |_, _, _| {}) {
            Ok(Report { before: Some(before), .. }) => before,
            Ok(_) => bail!(
                "{}: this file system does not tell where files lie, so that no gain can be told; leave out --when-worth",
                shown(&self.dir)
            ),
            Err(error) => {
                self.complain(&error);
                return Ok(ExitCode::from(EXIT_OURS));
            }
        };
        let figures = Disk::below(&self.dir).figures;
        let mut history = History::of(&self.dir)?;
        let is_due = history.look(&self.dir, &before, &figures, self.reads)?;
        if self.dry_run {
            return Ok(ExitCode::SUCCESS);
        }
        history.save()?;
        if !is_due {
            return Ok(ExitCode::SUCCESS);
        }
        let (status, report) = self.refresh(options)?;
        if let Some(after) = report.and_then(|report| report.after) {
            history.refreshed(&before, &after, &figures);
            history.save()?;
        }
        Ok(status)
    }

    fn tell(&self, report: &Report) -> anyhow::Result<()> {
        let (dir, disk) = (shown(&self.dir), Disk::below(&self.dir));
        if report.recovered {
            say!("{dir}: cleared up after an interrupted refresh")?;
        }
        let (files, bytes) = (report.files, Bytes::new(report.bytes));
        let verb = if self.dry_run { "would rewrite" } else { "rewrote" };
        say!("{dir}: {verb} {files} files, {bytes}")?;
        match (report.before, report.after) {
            (Some(before), Some(after)) => {
                say!("  before  {}", disk.describe(&before))?;
                let name = if self.dry_run { "hoped " } else { "after " };
                say!("  {name}  {}", disk.describe(&after))?;
            }
            _ => say!("  this file system does not tell where files lie")?,
        }
        if !report.left.is_empty() {
            say!("  left as they are: {}", report.left.len())?;
            for line in report.left.iter().take(NAMED) {
                say!("    {line}")?;
            }
            if let Some(more @ 1..) = report.left.len().checked_sub(NAMED) {
                say!("    and {more} more")?;
            }
        }
        for line in &report.notes {
            tell!("discnice: {line}");
        }
        Ok(())
    }

    /// One line for each problem; members are named from DIR on.
    fn complain(&self, error: &RefreshError) {
        for line in error.to_string().lines() {
            match line.strip_prefix(".: ") {
                Some(about_dir) => tell!("discnice: {}: {about_dir}", shown(&self.dir)),
                None => tell!("discnice: {line}"),
            }
        }
    }
}

fn show_progress(last: &mut String, step: &str, done: u64, total: u64) {
    let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
    let line = format!("{step} {percent} %");
    if line != *last {
        replace_line(&line);
        *last = line;
    }
}
