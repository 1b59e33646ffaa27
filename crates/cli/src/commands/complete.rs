//! What shells complete: names of classes and processes, one a line, with a tab before what a process is called. Hidden: the
//! completions that `cargo pages manual` writes ask it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use discnice_escape::Foreign;
use discnice_processes::tree::every_process;
use discnice_sys::process;
use rustix::process::geteuid;

use crate::classes;
use crate::output::Lines;
use crate::running::Running;

/// Print what shells complete
#[derive(Debug, Args)]
pub struct Complete {
    /// Of what
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Classes by their names.
    Classes,
    /// Processes of this user.
    Processes,
    /// Processes that are in a class.
    Members,
}

impl Complete {
    /// Prints them; what cannot be listed is left out.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut lines = Lines::default();
        match self.what {
            What::Classes => {
                let all = classes::all().unwrap_or_default();
                // Those that were made for one job are named by their processes.
                let named = all.iter().filter(|found| !found.is_automatic());
                let names: BTreeSet<String> = named.map(|found| found.name()).collect();
                names.iter().for_each(|name| lines.push(format_args!("{}", Foreign::text(name))));
            }
            What::Processes => {
                for id in every_process().filter(|id| *id != process::id() && is_own(*id)) {
                    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                    lines.push_pair(&id.to_string(), name.trim_end());
                }
            }
            What::Members => {
                for found in classes::all().unwrap_or_default() {
                    for running in Running::all(&found) {
                        let name = running.name();
                        lines.push_pair(&running.member.process().to_string(), &name);
                    }
                }
            }
        }
        lines.say()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a process is this user's, and no part of the kernel.
fn is_own(id: u32) -> bool {
    let owner = fs::metadata(format!("/proc/{id}")).map(|meta| meta.uid());
    owner.is_ok_and(|owner| owner == geteuid().as_raw())
        && fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.is_empty())
}
