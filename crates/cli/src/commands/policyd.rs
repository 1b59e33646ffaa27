//! `discnice policyd`: the daemon, which other commands start when they need it.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use discnice_sys::block::BlockId;
use discnice_units::Nanos;
use discnice_watcher::daemon::{DaemonSettings, serve};

use crate::config::ConfigFiles;
use crate::output::tell;
use crate::ruled;
use crate::watching::read_the_clock_by_libc;

const EXAMPLES: &str = "\
Examples:
  discnice policyd                    in the foreground; other commands start it as a daemon
  discnice policyd --idle 1h          the same, for an hour with nothing to watch";

/// Watch classes from outside and apply rules; other commands start it when they need it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Policyd {
    /// Begin with the class in this block of shared memory
    #[arg(long, value_name = "BLOCK", hide = true, value_parser = block)]
    watch: Option<BlockId>,
    /// End after this time with nothing to watch, unless there are rules
    #[arg(long, value_name = "TIME", default_value = "1min", allow_hyphen_values = true)]
    idle: Nanos,
}

impl Policyd {
    /// Serves in the foreground until nothing has been watched for a while, or a signal asks it to
    /// end.
    ///
    /// # Errors
    /// There is no private runtime directory, or descriptors are short.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        read_the_clock_by_libc();
        let end = serve(self.watch, self.idle, SETTINGS).context("cannot serve")?;
        if end == discnice_watcher::daemon::server::End::NotNeeded {
            tell!("discnice: another policyd of this user is running");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn block(digits: &str) -> Result<BlockId, &'static str> {
    let number = u64::from_str_radix(digits, 16);
    number.map(BlockId::from_claim).map_err(|_| "no block; give its hexadecimal number")
}

const SETTINGS: DaemonSettings =
    DaemonSettings { addresses: fleet_of, programs: program_of, rules: ruled::RULEBOOK };

/// The address of the budget that a class of this name shares, read anew each time.
fn fleet_of(name: &str) -> Result<Option<String>, String> {
    let config = ConfigFiles::load().map_err(|error| format!("{error:#}"))?;
    Ok(config.fleet(name).map(str::to_owned))
}

/// The program that is the policy of a class of this name.
fn program_of(name: &str) -> Result<Option<Vec<String>>, String> {
    let config = ConfigFiles::load().map_err(|error| format!("{error:#}"))?;
    Ok(config.program(name).map(<[String]>::to_vec))
}
