//! Every amount and time that tunes the daemon, by concept, and those of the watcher that it shares.

pub use crate::tuning::{Group, Row, Unit, discovery, looks};

pub mod daemon;
pub mod leases;
pub mod memory;
pub mod programs;
pub mod rules;

/// Lists all constants that tune the watcher and its daemon.
#[must_use]
pub fn groups() -> Vec<Group> {
    let mut groups = crate::tuning::groups();
    groups.extend([
        daemon::group(),
        memory::group(),
        rules::group(),
        programs::group(),
        leases::group(),
    ]);
    groups
}
