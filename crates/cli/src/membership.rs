//! Which class a process is in.

use discnice_watcher::process::Pinned;

use crate::classes::{self, MappedClass};
use crate::running::Running;

/// Returns the class that lists this process.
///
/// # Errors
/// The classes cannot be listed.
pub fn class_of(pinned: &Pinned) -> anyhow::Result<Option<MappedClass>> {
    Ok(classes::all()?.into_iter().find(|found| lists(found, pinned)))
}

/// Whether the class lists this process, and not an ended one that had its number.
pub fn lists(found: &MappedClass, pinned: &Pinned) -> bool {
    Running::listed(found, pinned.id()).is_some()
}
