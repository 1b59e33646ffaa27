//! Whether the system lets this user see the connections of its own processes from outside.

use std::fs;
use std::os::fd::AsRawFd;

use discnice_ledger::policy::Resources;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::diag::Diag;

/// `CAP_SYS_PTRACE`, linux/capability.h.
const SYS_PTRACE: u64 = 1 << 19;

/// What of the network is seen of a process without the library: its TCP connections, where the system permits to borrow
/// descriptors or the kernel tells of connections without them, else nothing.
#[must_use]
pub fn seen() -> Resources {
    let is_seen = may_trace() && can_borrow() || Diag::open().is_ok();
    if is_seen { Resources::NETWORK } else { Resources::NONE }
}

/// Whether Yama lets one process of the user look into another. Kernel Documentation/admin-guide/LSM/Yama.rst
fn may_trace() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref().map(str::trim) {
        Err(_) | Ok("0") => true,
        Ok("3") => false,
        Ok(_) => is_capable(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
    }
}

/// Whether `/proc/PID/status` shows the capability to trace any process.
fn is_capable(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    bits.is_some_and(|bits| bits & SYS_PTRACE != 0)
}

/// Whether the call is there, and no filter forbids it (containers).
fn can_borrow() -> bool {
    let Ok(own) = pidfd_open(getpid(), PidfdFlags::empty()) else { return false };
    // Some descriptor is always open: this one.
    pidfd_getfd(&own, own.as_raw_fd(), PidfdGetfdFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_found_in_the_status() {
        assert!(is_capable("Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n"));
        assert!(!is_capable("CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"));
        assert!(!is_capable("CapEff:\tnone\n") && !is_capable(""));
    }
}
