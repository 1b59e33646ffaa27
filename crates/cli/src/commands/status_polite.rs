//! The part of `discnice status` that tells of regulation by progress.

use discnice_escape::Foreign;
use discnice_progress::control::report::{Report, posted};
use discnice_progress::testpoint::{paths, store};

use crate::output::{counted, say};

/// Jobs that are regulated from outside.
pub fn jobs() -> Vec<Report> {
    paths::runtime().map(|private| posted(private.path())).unwrap_or_default()
}

/// Returns what went wrong without stopping a job: of target files that were set aside, one line
/// each.
pub fn notices() -> Vec<String> {
    let files = paths::targets().map(|directory| store::set_aside_files(&directory));
    let line = |file: std::path::PathBuf| {
        format!(
            "{}: progress targets that could not be trusted; their job calibrates anew, and the \
             file may be removed",
            Foreign::path(&file)
        )
    };
    files.unwrap_or_default().into_iter().map(line).collect()
}

fn times(count: impl TryInto<u64>) -> String {
    counted(count, "time", "times")
}

/// Prints both.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(jobs: &[Report], notices: &[String]) -> anyhow::Result<()> {
    for job in jobs {
        let state = if job.suspended { "suspended" } else { "running" };
        let priority = match job.priority {
            0 | 100 => String::new(),
            other => format!(", priority {other}"),
        };
        let phase = match job.phase.as_str() {
            "" => String::new(),
            phase => format!(", phase {}", Foreign::text(phase)),
        };
        let let_on = match job.let_on {
            0 => String::new(),
            count => format!(", let on {} as others waited for its locks", times(count)),
        };
        let elsewhere = match job.elsewhere {
            0 => String::new(),
            count => {
                format!(", let on {} as what slowed it down was not on this machine", times(count))
            }
        };
        say!(
            "polite: {:>8} {:<16} {state}{priority}{phase}, suspended {} for {:.1}s{let_on}{elsewhere} (regulator {})",
            job.process,
            Foreign::text(&job.name),
            times(job.suspensions),
            job.suspended_seconds,
            job.regulator
        )?;
        for notice in &job.notices {
            say!("  {notice}")?;
        }
    }
    for notice in notices {
        say!("notice: {notice}")?;
    }
    Ok(())
}
