//! The fast form of the decision: by fewer questions, for calls that then cost 16 to 25 instructions.
//!
//! It answers `None` where it does not know, and never differs from the full form otherwise. There are
//! two sets of questions, as what the first needs lies in few cache lines: [`unlimited`] reads only
//! the class's word of limits, [`held`] also what is known of the descriptor and the thread.
//!
//! | asked | `transfer` | `write` | `metadata`, `operation` |
//! |---|---|---|---|
//! | `unlimited`: nothing holds the class | and no such descriptor was ever changed | as `transfer` | always |
//! | `held`: cannot reach a disk, no limited socket | if anything is limited, no trace runs, and faults are paid for | as `transfer` | - |
//! | `held`: rewrites dirty pages, not predicted | - | if a disk is limited and no trace runs | - |
//! | `held`: limits of disks alone, faults paid for | - | on an unknown file, if deletions cover it | if the last look found all cached |

use discnice_ledger::trace::Why;

use super::Conditions;

/// Nothing at all holds the process.
pub mod unlimited {
    use super::{Conditions, Why};

    /// Decides about a read or write through a descriptor.
    #[inline(always)]
    #[must_use]
    pub fn transfer(call: &impl Conditions) -> Option<Why> {
        if call.is_unlimited() && call.was_never_shaped() { Some(Why::Unlimited) } else { None }
    }

    /// Decides about a call on names, inodes or directories.
    #[inline(always)]
    #[must_use]
    pub fn metadata(call: &impl Conditions) -> Option<Why> {
        if call.is_unlimited() { Some(Why::Unlimited) } else { None }
    }
}

/// Something may hold the process, but not this call, and no trace runs.
pub mod held {
    use super::{Conditions, Why};

    /// Decides about a read through a descriptor.
    #[inline(always)]
    #[must_use]
    pub fn transfer(call: &impl Conditions) -> Option<Why> {
        if !call.is_other() || call.is_socket() && call.minds_traffic() {
            return None;
        }
        let is_examined = call.is_unlimited() || call.is_traced() || call.owes_for_faults();
        if is_examined { None } else { Some(Why::Elsewhere) }
    }

    /// Decides about a write through a descriptor.
    #[inline(always)]
    #[must_use]
    pub fn write(call: &impl Conditions) -> Option<Why> {
        if call.rewrites() && !call.is_predicted() {
            let is_examined = call.is_free() || call.is_traced();
            return if is_examined { None } else { Some(Why::Dirty) };
        }
        if call.is_blank() {
            let passes = is_held_on_disk_alone(call) && call.deletions_cover();
            return if passes { Some(Why::Deletes) } else { None };
        }
        transfer(call)
    }

    /// Decides about a call on names, inodes or directories.
    #[inline(always)]
    #[must_use]
    pub fn metadata(call: &impl Conditions) -> Option<Why> {
        let passes = is_held_on_disk_alone(call) && !call.missed();
        if passes { Some(Why::Cached) } else { None }
    }

    #[inline(always)]
    fn is_held_on_disk_alone(call: &impl Conditions) -> bool {
        call.is_held_on_disk_alone() && !call.owes_for_faults()
    }
}
