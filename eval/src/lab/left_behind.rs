//! What runs have left behind that are no more, as they were killed.

use std::fs;

use super::{cgroup, link, memory_limit, scratch, swap};

/// Removes the folders, control groups and networks of runs that are no more.
///
/// # Errors
/// One of them cannot be removed.
pub fn remove() -> anyhow::Result<()> {
    link::remove_left_behind();
    swap::remove_left_behind();
    for group in [cgroup::left_behind(), memory_limit::left_behind()].into_iter().flatten() {
        // One with processes in it stays; the next run goes on with it.
        let _ = fs::remove_dir(group);
    }
    scratch::remove_stale()
}
