//! Which signals wait, and what the process does about them.

use super::path;
use crate::lines::lines;

/// Signals that were sent to the process or one of its threads' leader and wait to be acted upon,
/// neither blocked nor ignored: bit `n - 1` is signal `n`. From `/proc/PID/status`.
#[must_use]
pub fn pending_signals(id: u32) -> u64 {
    Masks::of(id).pending()
}

/// Signals that were sent to the process and that it has not received yet, also those that it blocks.
#[must_use]
pub fn undelivered_signals(id: u32) -> u64 {
    Masks::of(id).undelivered()
}

/// Signals of [`pending_signals`] that end the process, as it has no handler for them and the default is to end.
#[must_use]
pub fn fatal_signals(id: u32) -> u64 {
    let harmless = [
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGURG,
        libc::SIGWINCH,
        libc::SIGSTOP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    let harmless = harmless.iter().fold(0, |mask, signal| mask | 1u64 << (signal - 1));
    let masks = Masks::of(id);
    masks.pending() & !(masks.caught | harmless)
}

/// Signals that the process ignores, as a mask.
#[must_use]
pub fn ignored_signals(id: u32) -> u64 {
    Masks::of(id).ignored
}

/// What `/proc/PID/status` says of signals.
#[derive(Debug, Clone, Copy, Default)]
struct Masks {
    /// Sent to the thread.
    thread: u64,
    /// Sent to the whole process.
    process: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
}

impl Masks {
    /// Reads them line by line, since the list of groups before them may be long; none where there is no such process.
    fn of(id: u32) -> Self {
        let mut masks = Self::default();
        let read = path(id, "status").map(|path| lines(path.as_c_str(), |line| masks.enter(line)));
        if matches!(read, Some(Ok(()))) { masks } else { Self::default() }
    }

    fn enter(&mut self, line: &[u8]) {
        let masks = [
            (&b"SigPnd:"[..], &mut self.thread),
            (b"ShdPnd:", &mut self.process),
            (b"SigBlk:", &mut self.blocked),
            (b"SigIgn:", &mut self.ignored),
            (b"SigCgt:", &mut self.caught),
        ];
        for (label, mask) in masks {
            if let Some(digits) = line.strip_prefix(label) {
                *mask = hexadecimal(digits.trim_ascii());
            }
        }
    }

    const fn undelivered(self) -> u64 {
        self.thread | self.process
    }

    const fn pending(self) -> u64 {
        self.undelivered() & !(self.blocked | self.ignored)
    }
}

fn hexadecimal(digits: &[u8]) -> u64 {
    let value = |sum: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(16).unwrap_or(0);
        sum << 4 | u64::from(digit)
    };
    digits.iter().fold(0, value)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use discnice_requirements::skip;

    fn of_text(status: &[u8]) -> Masks {
        let mut masks = Masks::default();
        status.split(|byte| *byte == b'\n').for_each(|line| masks.enter(line));
        masks
    }

    #[test]
    fn signals_that_wait() {
        let status =
            b"Name:\tx\nSigQ:\t0/9\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000004002\n\
            SigBlk:\t0000000000000001\nSigIgn:\t0000000000000002\nSigCgt:\t0\n";
        let masks = of_text(status);
        assert_eq!(masks.pending(), 1 << (libc::SIGTERM - 1));
        assert_eq!(masks.undelivered(), 0x4003);
        let caught = b"ShdPnd:\t0000000000004400\nSigCgt:\t0000000000004000\n";
        let masks = of_text(caught);
        assert_eq!(masks.pending() & !masks.caught, 1 << (libc::SIGSEGV - 1));
        assert_eq!(fatal_signals(std::process::id()), 0);
        assert_eq!(pending_signals(std::process::id()), 0);
    }

    #[test]
    fn signals_are_found_behind_a_long_list_of_groups() {
        use std::os::unix::process::CommandExt;
        const GROUPS: usize = 1000;
        let groups: std::vec::Vec<u32> =
            (0..GROUPS as u32).map(|one| 1_000_000_000 + one).collect();
        let mut command = std::process::Command::new("sleep");
        command.arg("100");
        let prepare = move || {
            // SAFETY: setgroups(2) reads so many numbers; signal(2) takes a number and no function.
            let done = unsafe {
                libc::signal(libc::SIGUSR2, libc::SIG_IGN);
                libc::setgroups(GROUPS, groups.as_ptr())
            };
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: it makes two system calls.
        let started = unsafe { command.pre_exec(prepare) }.spawn();
        let mut child = match started {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                skip!("groups cannot be set: {error}")
            }
            started => started.unwrap(),
        };
        let ignored = ignored_signals(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_ne!(ignored & 1 << (libc::SIGUSR2 - 1), 0, "{ignored:x}");
    }
}
