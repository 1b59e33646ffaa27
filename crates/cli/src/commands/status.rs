//! `discnice status`: what is limited, and what escapes.

use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use discnice_progress::control::report::Report;
use discnice_watcher::holding::let_go_of_abandoned;
use serde::Serialize;

use super::status_table::table;
use super::{class_report, status_polite, status_why};
use crate::classes::{self, MappedClass};
use crate::output::{self, counted, say};
use crate::watching::read_the_clock_by_libc;

const EXAMPLES: &str = "\
Examples:
  discnice status             what runs, how fast, and what it waits for
  discnice status --json      the same as JSON
  discnice status --why       why calls of each class were let through, and how many";

/// Show classes, their members, their rates, and what cannot be limited
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show instead why calls were let through: the number of calls and bytes for each reason
    #[arg(long, value_name = "CLASS", num_args = 0..=1, value_parser = NonEmptyStringValueParser::new())]
    why: Option<Option<String>>,
}

impl Status {
    /// Prints it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(class) = self.why {
            return status_why::run(class.as_deref(), self.json);
        }
        read_the_clock_by_libc();
        let_go_of_abandoned();
        let (jobs, notices) = (status_polite::jobs(), status_polite::notices());
        let classes = classes::all()?;
        let mut notices = notices;
        notices.extend(of_other_versions());
        if self.json {
            let classes = class_report::to_json(&classes, 1)?;
            let others = serde_json::to_string_pretty(&Others { jobs, notices })?;
            let others = others.trim_start_matches('{');
            output::json(&format!("{{\n  \"classes\": {classes},{others}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        if !classes.is_empty() || jobs.is_empty() {
            print(&classes, false, true)?;
        }
        status_polite::print(&jobs, &notices)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is to be said of classes that this version cannot read.
fn of_other_versions() -> Option<String> {
    match classes::of_other_versions() {
        0 => None,
        count => Some(format!(
            "{} of another version of DiscNice: their processes go on within their limits",
            counted(count, "class", "classes")
        )),
    }
}

/// What `status --json` prints besides the `classes`.
#[derive(Debug, Serialize)]
struct Others {
    /// Jobs that are regulated by their progress, from outside.
    jobs: Vec<Report>,
    /// What went wrong without stopping anything.
    notices: Vec<String>,
}

/// Prints classes, with their members if `members`.
pub fn print(classes: &[MappedClass], json: bool, members: bool) -> anyhow::Result<()> {
    if json {
        output::json(&class_report::to_json(classes, 0)?)?;
        return Ok(());
    }
    let reports = class_report::all(classes);
    if reports.is_empty() {
        say!("Nothing is limited.")?;
    } else {
        table(&reports, members).say()?;
    }
    Ok(())
}
