//! Lets go of what still stands because all was killed at once that held it, helpers included.

use discnice_processes::guardian;
use discnice_processes::hold_record::{HoldKind, settle_abandoned};

use super::cgroup;

/// Continues what was left stopped by signals, and thaws what was left in a freezer cgroup. What living processes hold is
/// left alone.
pub fn let_go_of_abandoned() {
    guardian::continue_abandoned();
    // A cgroup may be gone by now, or is used by a process that freezes anew.
    settle_abandoned(HoldKind::Frozen, |process, _| drop(cgroup::tidy_abandoned(process)));
}
