//! Which signals wait, and what the process does about them.

use super::read;

/// Signals that were sent to the process or one of its threads' leader and wait to be acted upon,
/// neither blocked nor ignored: bit `n - 1` is signal `n`. From `/proc/PID/status`.
#[must_use]
pub fn pending_signals(id: u32) -> u64 {
    let mut buffer = [0; 4096];
    read(id, "status", &mut buffer).map_or(0, |text| parse_pending(text, b""))
}

/// Signals that were sent to the process and that it has not received yet, also those that it blocks.
#[must_use]
pub fn undelivered_signals(id: u32) -> u64 {
    let mut buffer = [0; 4096];
    read(id, "status", &mut buffer).map_or(0, parse_undelivered)
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
    let mut buffer = [0; 4096];
    read(id, "status", &mut buffer).map_or(0, |text| parse_pending(text, b"SigCgt:")) & !harmless
}

/// Signals that the process ignores, as a mask.
#[must_use]
pub fn ignored_signals(id: u32) -> u64 {
    let mut buffer = [0; 4096];
    read(id, "status", &mut buffer).map_or(0, |text| parse_mask(text, b"SigIgn:"))
}

/// Pending signals without those of the mask with this label; an empty one is none.
fn parse_pending(text: &[u8], without: &[u8]) -> u64 {
    let mask = |label: &[u8]| parse_mask(text, label);
    let without = if without.is_empty() { 0 } else { mask(without) };
    parse_undelivered(text) & !(mask(b"SigBlk:") | mask(b"SigIgn:") | without)
}

fn parse_undelivered(text: &[u8]) -> u64 {
    parse_mask(text, b"SigPnd:") | parse_mask(text, b"ShdPnd:")
}

/// The mask with this label; an empty one if there is none.
fn parse_mask(text: &[u8], label: &[u8]) -> u64 {
    let mut lines = text.split(|byte| *byte == b'\n');
    let digits = lines.find_map(|line| line.strip_prefix(label)).unwrap_or_default();
    let value = |sum: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(16).unwrap_or(0);
        sum << 4 | u64::from(digit)
    };
    digits.trim_ascii().iter().fold(0, value)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn signals_that_wait() {
        let status =
            b"Name:\tx\nSigQ:\t0/9\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000004002\n\
            SigBlk:\t0000000000000001\nSigIgn:\t0000000000000002\nSigCgt:\t0\n";
        assert_eq!(parse_pending(status, b""), 1 << (libc::SIGTERM - 1));
        assert_eq!(parse_undelivered(status), 0x4003);
        let caught = b"ShdPnd:\t0000000000004400\nSigCgt:\t0000000000004000\n";
        assert_eq!(parse_pending(caught, b"SigCgt:"), 1 << (libc::SIGSEGV - 1));
        assert_eq!(fatal_signals(std::process::id()), 0);
        assert_eq!(pending_signals(std::process::id()), 0);
    }
}
