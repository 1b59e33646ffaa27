//! What the configuration tells the daemon.

use crate::daemon::fleet_lease::Addresses;
use crate::daemon::policy_program::Programs;
use crate::daemon::rules::Rulebook;

/// What the configuration says, read anew each time.
#[derive(Debug, Clone, Copy)]
pub struct DaemonSettings {
    /// Which classes share a budget with other machines, and where that is.
    pub addresses: Addresses,
    /// Which classes have a policy of the user's own.
    pub programs: Programs,
    /// Which processes that no command of ours started enter a class.
    pub rules: Rulebook,
}
