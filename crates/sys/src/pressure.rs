//! For how long tasks wait for what the machine has too little of. Documentation/accounting/psi.rst

use core::ffi::CStr;

use discnice_units::Nanos;

use crate::lines::{lines, number};

/// What tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PressureResource {
    /// Processors.
    Cpu,
    /// Disks.
    Io,
    /// Memory.
    Memory,
}

impl PressureResource {
    const fn path(self) -> &'static CStr {
        match self {
            Self::Cpu => c"/proc/pressure/cpu",
            Self::Io => c"/proc/pressure/io",
            Self::Memory => c"/proc/pressure/memory",
        }
    }
}

/// For how long at least one task waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Part of the last ten seconds, in whole percent.
    pub recent: u64,
    /// Since the machine started.
    pub total: Nanos,
}

/// How long tasks have waited for this; `None` where the kernel keeps no such account.
#[must_use]
pub fn of(resource: PressureResource) -> Option<Pressure> {
    let mut found = None;
    lines(resource.path(), |line| found = found.or_else(|| parse(line))).ok()?;
    found
}

/// A line like `some avg10=1.23 avg60=0.00 avg300=0.00 total=456`, in percent and microseconds.
fn parse(line: &[u8]) -> Option<Pressure> {
    let mut words = line.strip_prefix(b"some ")?.split(u8::is_ascii_whitespace);
    let mut value = |label: &[u8]| words.find_map(|word| word.strip_prefix(label)).map(number);
    let (recent, total) = (value(b"avg10=")?, value(b"total=")?);
    Some(Pressure { recent, total: Nanos(total.saturating_mul(1000)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_that_waits_counts() {
        let some = b"some avg10=12.34 avg60=0.00 avg300=0.00 total=2500";
        assert_eq!(parse(some), Some(Pressure { recent: 12, total: Nanos(2_500_000) }));
        assert_eq!(parse(b"full avg10=12.34 avg60=0.00 avg300=0.00 total=2500"), None);
        assert_eq!(parse(b"some avg10=12.34"), None);
    }
}
