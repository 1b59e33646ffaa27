//! `discnice refresh`: rewrites a directory in layout order (gray-box paper, section 4.2.1).

mod disk;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::inheritance;
use crate::output::{self, counted, replace_line, say, tell};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use discnice_graybox::fldc::refresh::{
    Cleared, Options, RefreshError, RefreshReport, clear_up, refresh,
};
use discnice_graybox::input::{reason, shown};

use self::disk::Disk;
use super::refresh_worth::History;

const EXAMPLES: &str = "\
Examples:
  discnice refresh --dry-run Mail       what could be gained
  discnice refresh Mail                 rewrite it
  discnice refresh --when-worth Mail    the same, once that saves more time than it takes";

/// Rewrite a directory so that its files lie one after another on the disk, small files first
///
/// The directory is complete at every moment. Each file is copied, and the copy is written to the disk and compared. It then
/// replaces the file in one step, while no process has the file open. Files in use are left alone. What an interrupted
/// refresh leaves behind is removed by the next one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Refresh {
    /// Only show how the files lie and what could be gained
    #[arg(long)]
    dry_run: bool,
    /// Also rewrite files that have one name in DIR and hard links outside (these then refer to the old file), and files
    /// for which the file system cannot tell whether they are in use
    #[arg(long)]
    force: bool,
    /// File that lists paths below DIR, one per line, in the order wanted
    #[arg(long, value_name = "LIST")]
    order: Option<PathBuf>,
    /// Rewrite only once that saves time. Each call adds to a sum how much time reading has lost since the last call because
    /// of how the files lie, and rewrites when the sum exceeds the time that rewriting takes. Meant to be called by a timer,
    /// such as discnice-refresh@.timer
    #[arg(long)]
    when_worth: bool,
    /// With --when-worth: how many times a day all files are read
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
    let lines: Vec<_> = lines.map(|line| OsString::from_vec(line.to_vec())).collect();
    if lines.is_empty() {
        bail!("the list {} is empty; give a file with one name a line", shown(path));
    }
    Ok(lines)
}

impl Refresh {
    /// Refreshes; 125 if it was refused or failed, and 1 if something was kept that another program
    /// had changed.
    ///
    /// # Errors
    /// An unreadable or empty list.
    pub fn run(self) -> Result<ExitCode> {
        inheritance::survive_limits_of_files();
        let order = match &self.order {
            None => Vec::new(),
            Some(path) => read_list(path)?,
        };
        let options = Options {
            dry_run: self.dry_run,
            force: self.force,
            only_better: self.when_worth,
            order: &order,
        };
        if self.when_worth {
            return self.run_when_worth(&options);
        }
        let (status, report) = self.refresh(&options)?;
        if !self.dry_run
            && let Some(report) = report
        {
            self.note(&report);
        }
        Ok(status)
    }

    /// Notes a refresh in the history that --when-worth keeps, if there is one.
    fn note(&self, report: &RefreshReport) {
        let (Some(before), Some(after)) = (report.before, report.after) else { return };
        let Ok(mut history) = History::of(&self.dir) else { return };
        if history.is_begun() {
            history.refreshed(&before, &after, &Disk::below(&self.dir).figures);
            if let Err(error) = history.save() {
                tell!("discnice: {error:#}");
            }
        }
    }

    /// Refreshes, and tells; the report if that was done.
    fn refresh(&self, options: &Options<'_>) -> Result<(ExitCode, Option<RefreshReport>)> {
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

    /// Clears up after interrupted refreshes, then refreshes if that is worth it.
    fn run_when_worth(&self, options: &Options<'_>) -> Result<ExitCode> {
        if self.dry_run {
            return self.refresh_if_worth(options);
        }
        match clear_up(&self.dir, self.force) {
            Ok(cleared) => {
                self.tell_cleared(&cleared)?;
                let status = self.refresh_if_worth(options)?;
                let kept = status == ExitCode::SUCCESS && !cleared.kept.is_empty();
                Ok(if kept { ExitCode::FAILURE } else { status })
            }
            Err(error) => {
                self.complain(&error);
                Ok(ExitCode::from(EXIT_OURS))
            }
        }
    }

    fn tell_cleared(&self, cleared: &Cleared) -> Result<()> {
        if cleared.recovered {
            say!("{}: cleared up after an interrupted refresh", shown(&self.dir))?;
        }
        for line in &cleared.kept {
            tell!("discnice: {line}");
        }
        Ok(())
    }

    /// Looks, keeps what was seen, and refreshes if that is worth it.
    fn refresh_if_worth(&self, options: &Options<'_>) -> Result<ExitCode> {
        let look = Options { dry_run: true, ..*options };
        let (before, notes) = match refresh(&self.dir, &look, &mut |_, _, _| {}) {
            Ok(RefreshReport { before: Some(before), notes, .. }) => (before, notes),
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
        if self.dry_run || !is_due {
            notes.iter().for_each(|line| tell!("discnice: {line}"));
        }
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

    fn tell(&self, report: &RefreshReport) -> anyhow::Result<()> {
        let (dir, disk) = (shown(&self.dir), Disk::below(&self.dir));
        if report.recovered {
            say!("{dir}: cleared up after an interrupted refresh")?;
        }
        let (files, bytes) = (report.files, report.bytes);
        let verb = if self.dry_run { "would rewrite" } else { "rewrote" };
        if report.worse.is_some() {
            say!("{dir}: rewrote nothing, as the free space here is in too many pieces")?;
        } else {
            say!("{dir}: {verb} {}, {bytes}", counted(files, "file", "files"))?;
        }
        let (was, is) = match report.worse {
            Some(_) => ("now   ", "else  "),
            None if self.dry_run => ("before", "hoped "),
            None => ("before", "after "),
        };
        match (report.before, report.worse.or(report.after)) {
            (Some(before), Some(after)) => {
                say!("  {was}  {}", disk.describe(&before))?;
                say!("  {is}  {}", disk.describe(&after))?;
            }
            _ => {
                say!("  this file system does not tell where files lie")?;
            }
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
