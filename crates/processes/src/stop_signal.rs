//! One process is stopped by SIGSTOP and continued by SIGCONT, and stop signals of others are kept.
//!
//! A stop signal that is sent to a stopped process stays pending, and SIGCONT discards it (signal(7)). So what is pending
//! when the process is to be continued tells what others want, as long as we leave no second signal of our own there: one
//! that comes while the first stops thread after thread stays pending, too.

use std::fs;
use std::io;

use discnice_sys::procfs;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::tree::Process;
use crate::wishes;

/// Stop signals that a process can handle or ignore.
const REQUESTS: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// Whether a process is stopped by a signal, or about to be.
pub(crate) fn is_stopping(process: Process) -> bool {
    // In this order: a signal that is not pending any more has stopped a thread.
    awaits(process, Signal::STOP) || has_stopped_thread(process)
}

/// Stops a process, unless that is under way.
///
/// # Errors
/// As [`send`].
pub(crate) fn stop(process: Process) -> io::Result<()> {
    if is_stopping(process) { Ok(()) } else { send(process, Signal::STOP) }
}

/// Continues a process, unless another process stopped it while it was stopped: then it stays so. SIGSTOP can also be
/// pending because two of our holders sent it; `is_held_elsewhere` says whether there is another one.
///
/// # Errors
/// As [`send`].
pub(crate) fn go_on(
    process: Process,
    is_held_elsewhere: impl FnOnce(Process) -> bool,
) -> io::Result<()> {
    // In this order: our own signal is pending until it has stopped a thread.
    let is_stopped = has_stopped_thread(process);
    if is_stopped && awaits(process, Signal::STOP) && !is_held_elsewhere(process) {
        return Ok(());
    }
    // SIGCONT discards also those that the process blocks.
    let pending = procfs::undelivered_signals(process.id());
    send(process, Signal::CONT)?;
    for signal in REQUESTS.into_iter().filter(|signal| pending & bit(*signal) != 0) {
        send(process, signal)?;
    }
    Ok(())
}

/// Whether a signal is pending.
fn awaits(process: Process, signal: Signal) -> bool {
    procfs::pending_signals(process.id()) & bit(signal) != 0
}

fn bit(signal: Signal) -> u64 {
    wishes::bit(signal.as_raw())
}

fn has_stopped_thread(process: Process) -> bool {
    // What executes a program has not stopped.
    if procfs::is_executing(process.id()) {
        return false;
    }
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten();
    let ids = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(procfs::stat_unguarded).any(|thread| thread.state == b'T')
}

/// Sends a signal to exactly this process: its descriptor cannot come to mean another one.
///
/// # Errors
/// `NotFound` when it is gone, at whichever call that shows; else as pidfd_send_signal(2).
pub(crate) fn send(process: Process, signal: Signal) -> io::Result<()> {
    let descriptor = pidfd_open(process.pid, PidfdFlags::empty()).map_err(missing)?;
    match process.stat() {
        Some(_) => pidfd_send_signal(descriptor, signal).map_err(missing),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The error of a call on a process. `ESRCH` has no kind of its own in the standard library.
fn missing(error: Errno) -> io::Error {
    if error == Errno::SRCH { io::ErrorKind::NotFound.into() } else { error.into() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// Waits until a signal is pending for a process, or is no longer.
    fn wait_until_pending(process: Process, signal: Signal, wanted: bool) -> bool {
        let is_pending = || {
            let text = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
            let mask = u64::from_str_radix(line.trim(), 16).unwrap();
            mask & 1 << (signal.as_raw() - 1) != 0
        };
        (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            is_pending() == wanted
        })
    }

    #[test]
    fn a_stop_signal_that_the_process_blocks_stays_pending() {
        let mut child =
            Command::new("env").args(["--block-signal=TSTP", "sleep", "60"]).spawn().unwrap();
        let blocks = || {
            let text = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
            text == "sleep\n"
        };
        while !blocks() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let process = Process::find(child.id()).unwrap();
        stop(process).unwrap();
        while !has_stopped_thread(process) {
            std::thread::sleep(Duration::from_millis(5));
        }
        send(process, Signal::TSTP).unwrap();
        assert!(wait_until_pending(process, Signal::TSTP, true));
        go_on(process, |_| false).unwrap();
        let is_kept = wait_until_pending(process, Signal::TSTP, true);
        let runs = !has_stopped_thread(process);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_kept && runs);
    }

    #[test]
    fn a_process_that_ended_meanwhile_is_not_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        child.kill().unwrap();
        assert!(child.wait().is_ok());
        assert_eq!(send(process, Signal::STOP).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
