//! `discnice doctor`: what of this machine, and of a program, can be regulated.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use discnice_escape::Foreign;
use discnice_graybox::mac;
use discnice_sys::block::Store;
use discnice_sys::process;

use super::tuning;
use crate::explanation::command;
use crate::mechanism::MechanismChoice;
use crate::output::{say, without_numbers};
use crate::{library, program};

const EXAMPLES: &str = "\
Examples:
  discnice doctor           what can be limited on this machine
  discnice doctor restic    the same, and whether restic can be limited
  discnice doctor --tuning  how closely processes are watched from outside";

/// Check what can be limited on this machine, and whether a program can be
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Program to check
    #[arg(value_parser = PathBufValueParser::new().map(PathBuf::into_os_string))]
    command: Option<OsString>,
    /// Print the amounts and times by which processes are watched from outside: value, meaning, and the decision record
    /// that says why
    #[arg(long, conflicts_with = "command")]
    tuning: bool,
    /// Print them as JSON: times in nanoseconds, rates in bytes per second
    #[arg(long, requires = "tuning")]
    json: bool,
}

/// One finding: what, whether it is well, and what it means.
struct Finding(&'static str, bool, String);

impl Doctor {
    /// Prints the findings; exit status 1 when something is wrong.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if self.tuning {
            tuning::print(self.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut findings = vec![
            library(),
            shared_memory(),
            private_directory(),
            account(),
            cancelled(),
            freezing(),
            memory(),
        ];
        if let Some(command) = &self.command {
            let Some(path) = program::find(command) else {
                bail!("no program {} in PATH; give its path", Foreign::word(command));
            };
            if let Some(fault) = program::fault(&path) {
                bail!("cannot look at {}: {fault}", Foreign::path(&path));
            }
            // As `run` would do it, and `explain` tells.
            let told = command::look(MechanismChoice::default(), command, false).told;
            let well = told.is_ok();
            let meaning = told.map_or_else(|why| why, |how| format!("can be limited, by {how}"));
            findings.push(Finding("program", well, format!("{}: {meaning}", Foreign::path(&path))));
        }
        for Finding(what, well, meaning) in &findings {
            let meaning = without_numbers(meaning);
            say!("{:<4} {what:<16} {meaning}", if *well { "ok" } else { "BAD" })?;
        }
        let well = findings.iter().all(|Finding(_, well, _)| *well);
        Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn library() -> Finding {
    match library::installed() {
        Ok(path) => Finding("library", true, Foreign::path(&path).to_string()),
        Err(error) => Finding("library", false, error.to_string()),
    }
}

/// Makes and removes what a class lies in.
fn shared_memory() -> Finding {
    let what = "shared memory";
    match discnice_registry::class::probe() {
        Ok(Store::Segment(_)) => Finding(what, true, "classes lie in System V segments".into()),
        Ok(Store::File(_)) => {
            let meaning = "no System V segment is to be had (kernel.shmmni, kernel.shm_rmid_forced in sysctl(8)): \
                           classes lie in files; programs in a chroot are limited from outside only";
            Finding(what, true, meaning.into())
        }
        Err(error) => Finding(what, false, format!("no class can be made: {error}")),
    }
}

/// Where names of classes, sockets and locks lie.
fn private_directory() -> Finding {
    let what = "directory";
    match discnice_paths::runtime() {
        Ok(private) => {
            let path = private.path().display();
            Finding(what, true, format!("{path} is this user's alone"))
        }
        Err(error) => Finding(what, false, format!("no private directory: {error}")),
    }
}

/// The kernel's account must move when a page is dirtied.
fn account() -> Finding {
    let what = "account";
    let before = process::usage().written;
    let dirty = (|| -> std::io::Result<()> {
        // Without a name that another user could have taken.
        tempfile::tempfile_in(std::env::current_dir()?)?.write_all(&[1; 65_536])
    })();
    let moved = process::usage().written > before;
    match dirty {
        Err(error) => Finding(what, true, format!("not tested: cannot write here: {error}")),
        Ok(()) if moved => {
            Finding(what, true, "the kernel accounts I/O of files in this folder".into())
        }
        Ok(()) => Finding(
            what,
            false,
            "the kernel does not account I/O in this folder (tmpfs needs none; FUSE and network \
             file systems keep none)"
                .into(),
        ),
    }
}

/// ptrace(2), kernel Documentation/admin-guide/LSM/Yama.rst.
fn freezing() -> Finding {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let meaning = match scope.as_deref().map(str::trim) {
        Err(_) | Ok("0") => "processes are held from outside by ptrace, unseen by their parents",
        Ok("3") => {
            "kernel.yama.ptrace_scope is 3: processes are held from outside by a cgroup of their own where theirs is delegated to this user, else by stop signals, which their parents can see"
        }
        Ok(_) => {
            "kernel.yama.ptrace_scope permits ptrace only with privilege: processes are held from outside by a cgroup of their own where theirs is delegated to this user, else by stop signals, which their parents can see"
        }
    };
    Finding("freezing", true, meaning.into())
}

/// Tells what a class that is paused for its memory can lose.
fn memory() -> Finding {
    let meaning = match (mac::stalled().is_some(), mac::has_swap()) {
        (true, true) => "guests are paused while others wait for memory, and their pages go first",
        (true, false) => {
            "no swap: of guests that are paused while others wait for memory only pages of files can go"
        }
        (false, _) => {
            "no /proc/pressure/memory (boot with psi=1): guests with too much memory are paused while memory is scarce, waited for or not"
        }
    };
    Finding("memory", true, meaning.into())
}

fn cancelled() -> Finding {
    let well = fs::read_to_string("/proc/self/io").is_ok();
    let meaning = if well {
        "data that is deleted before it is written costs nothing"
    } else {
        "no /proc/self/io: data that is deleted before it is written is charged"
    };
    Finding("cancelled writes", well, meaning.into())
}
