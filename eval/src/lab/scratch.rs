//! Folders outside of the disk: in memory, and for programs. Each carries our process id in its
//! name, so that what a killed run has left can be found and removed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::disk::Owner;

const PREFIX: &str = "discnice-eval-";

/// A file system in memory.
#[must_use]
pub fn memory() -> PathBuf {
    "/dev/shm".into()
}

/// Makes a folder in `parent` for `owner`, readable by all users.
///
/// # Errors
/// `parent` cannot be written.
pub fn make(parent: &Path, owner: Owner) -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    chown(folder.path(), Some(owner.uid), Some(owner.gid))?;
    Ok(folder)
}

/// Removes the folders of runs that are no more.
///
/// # Errors
/// One of them cannot be removed.
pub fn remove_stale() -> anyhow::Result<()> {
    for parent in [memory(), std::env::temp_dir()] {
        let Ok(entries) = fs::read_dir(&parent) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if maker(&name.to_string_lossy()).is_some_and(|pid| !is_running(pid)) {
                fs::remove_dir_all(entry.path())
                    .with_context(|| format!("cannot remove {}", entry.path().display()))?;
            }
        }
    }
    Ok(())
}

/// Whether a file lies in a folder that a run has left which is no more.
#[must_use]
pub fn is_stale(file: &Path) -> bool {
    let mut folders = file.ancestors().filter_map(|folder| folder.file_name());
    folders.any(|name| maker(&name.to_string_lossy()).is_some_and(|pid| !is_running(pid)))
}

/// Id of the process that made the folder of this name, if we make such names.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_taken_for_ours() {
        assert_eq!(maker("discnice-eval-123-aB3"), Some(123));
        for other in ["discnice-eval-123", "discnice-eval-x-1", "discnice-7-1", "discnice-eval"] {
            assert_eq!(maker(other), None, "{other}");
        }
        assert!(is_running(std::process::id()));
    }
}
