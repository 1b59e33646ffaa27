//! `discnice admit`: starts a command when the memory for it is really there (gray-box paper,
//! section 4.3).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueHint};
use discnice_escape::Foreign;
use discnice_graybox::input::reason;
use discnice_graybox::mac::{self, Admission, Demand, Ledger};
use discnice_units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::output::tell;
use crate::{launch, program, values};

const EXAMPLES: &str = "\
Examples:
  discnice admit --min 2G --max 8G sort -S {}b big    {} is the number of bytes granted
  discnice admit --min 1G --max 1G --timeout 5min make    give up after five minutes";

/// Start COMMAND once enough memory is free, and tell it how much it may use
///
/// COMMAND is granted between --min and --max bytes. The number of bytes is in the environment variable DISCNICE_MEMORY, and
/// replaces every {} in the arguments. Requests are granted in the order in which they are made.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Admit {
    /// Least memory that COMMAND can work with
    #[arg(long, value_name = "SIZE")]
    min: Bytes,
    /// Most memory that it can make use of
    #[arg(long, value_name = "SIZE")]
    max: Bytes,
    /// Grant a multiple of this size
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    multiple: Bytes,
    /// Give up after this time, with exit status 124: a number of seconds, or a time such as 5min
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = values::duration)]
    timeout: Option<Duration>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND",
          value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// As timeout(1).
const TIMED_OUT: u8 = 124;
/// As env(1) and nice(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How long to wait before looking again although no holder of a promise has ended: memory also
/// comes free by others.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How long to wait without a word.
const SILENT: Duration = Duration::from_secs(1);

impl Admit {
    //= gray-box/4.3-wait
    /// Waits for the memory and becomes the command.
    ///
    /// # Errors
    /// A senseless demand, or one for more than there can ever be; no access to the shared ledger.
    pub fn run(self) -> Result<ExitCode> {
        let demand = Demand::new(self.min, self.max, self.multiple)?;
        let Some(name) = self.command.first().filter(|name| !name.is_empty()) else {
            bail!("the command is empty; give a program and its arguments");
        };
        let (least, ceiling) = (demand.least(), Bytes::new(mac::ceiling()));
        if least > ceiling {
            bail!(
                "--min is {least}, but at most {ceiling} of memory can come free here; lower --min"
            );
        }
        let ledger = Ledger::open().map_err(|error| {
            anyhow!("cannot open the ledger of memory grants: {}", reason(&error))
        })?;
        let mut ticket = None;
        let Some(bytes) = self.wait(&ledger, &mut ticket, &demand)? else {
            ticket.map_or(Ok(()), |ticket| ledger.give_back(ticket))?;
            tell!("discnice: {} of memory did not come free in time", self.min);
            return Ok(ExitCode::from(TIMED_OUT));
        };
        let amount = bytes.get().to_string();
        let arguments = self.command[1..].iter().map(|argument| substitute(argument, &amount));
        let command: Vec<_> = std::iter::once(name.clone()).chain(arguments).collect();
        let error = launch::execute(&command, &[("DISCNICE_MEMORY", amount.into())]);
        ticket.map_or(Ok(()), |ticket| ledger.give_back(ticket))?;
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let why = program::trouble(Path::new(name), &error);
        tell!("discnice: cannot run {}: {why}", Foreign::word(name));
        Ok(ExitCode::from(if missing { NOT_FOUND } else { NOT_EXECUTABLE }))
    }

    /// What was granted; `None` after the timeout. Takes a ticket.
    fn wait(
        &self,
        ledger: &Ledger,
        ticket: &mut Option<u64>,
        demand: &Demand,
    ) -> Result<Option<Bytes>> {
        let start = Instant::now();
        let mut told = false;
        loop {
            if ticket.is_none() {
                *ticket = ledger.queue().context("cannot queue up for memory")?;
            }
            let holders = match ticket.map(|ticket| ledger.admit(ticket, demand)).transpose()? {
                Some(Admission::Granted(bytes)) => return Ok(Some(bytes)),
                Some(Admission::Wait(holders)) => holders,
                None => Vec::new(),
            };
            let left = self.timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            if !told && start.elapsed() >= SILENT {
                tell!("discnice: waiting until {} of memory is free", self.min);
                told = true;
            }
            wait_for_one(&holders, left.map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN)));
        }
    }
}

/// Waits until one of the processes ends, at most `longest`.
fn wait_for_one(pids: &[u32], longest: Duration) {
    let raw = pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
    // One that has ended in between must not be waited for.
    let handles: Vec<_> = raw.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect();
    if handles.len() < pids.len() {
        return std::thread::sleep(longest.min(Duration::from_millis(10)));
    }
    let mut polled: Vec<_> =
        handles.iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // A signal only makes us look earlier.
    let _ = poll(&mut polled, Some(&timeout));
}

/// Puts the amount in place of every `{}`.
fn substitute(argument: &OsString, amount: &str) -> OsString {
    let mut bytes = argument.as_bytes();
    let mut result = Vec::with_capacity(bytes.len());
    while let Some(at) = bytes.windows(2).position(|pair| pair == b"{}") {
        result.extend_from_slice(&bytes[..at]);
        result.extend_from_slice(amount.as_bytes());
        bytes = &bytes[at + 2..];
    }
    result.extend_from_slice(bytes);
    OsString::from_vec(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_replaced() {
        for (given, wanted) in [("{}", "42"), ("-S{}b", "-S42b"), ("{}{}", "4242"), ("{ }", "{ }")]
        {
            assert_eq!(substitute(&given.into(), "42"), OsString::from(wanted));
        }
    }
}
