//! New files that are removed unless they are kept under another name.
//!
//! tempfile finds names by a generator that asks for the current thread, which ends the program where no memory is left for
//! that (docs/adr/0019-injection.md). A name by process and clock is as new; the file is made only if nothing has it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use discnice_sys::{process, time};
use tempfile::{NamedTempFile, TempPath};

/// Makes a file in a folder, of a name that begins with `prefix` and a mode of which the umask takes its part.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn file(folder: &Path, prefix: &str, mode: u32) -> io::Result<NamedTempFile> {
    let path = folder.join(format!("{prefix}{}-{:x}", process::id(), time::now().0));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(mode).open(&path)?;
    Ok(NamedTempFile::from_parts(file, TempPath::try_from_path(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_new_and_removed_unless_kept() {
        let folder = tempfile::tempdir().unwrap();
        let one = file(folder.path(), ".new-", 0o600).unwrap();
        let other = file(folder.path(), ".new-", 0o600).unwrap();
        assert_ne!(one.path(), other.path());
        assert_eq!(one.as_file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let kept = folder.path().join("kept");
        drop(one.persist(&kept).unwrap());
        drop(other);
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((left, kept.exists()), (1, true));
        assert!(file(&folder.path().join("none"), "a", 0o600).is_err());
    }
}
