//! Removal of what need not be there.

use std::io;
use std::path::Path;

use anyhow::Context;

/// Takes `removed`, the outcome of a removal of `path`, for a success if there was nothing to remove.
///
/// # Errors
/// It is there and cannot be removed.
pub fn unless_missing(removed: io::Result<()>, path: &Path) -> anyhow::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_there_and_stays_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (file, below) = (folder.path().join("file"), folder.path().join("file/below"));
        unless_missing(fs::remove_file(&file), &file).unwrap();
        fs::write(&file, "").unwrap();
        let error = unless_missing(fs::remove_file(&below), &below).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot remove {}", below.display()));
        unless_missing(fs::remove_file(&file), &file).unwrap();
        assert!(!file.exists());
    }
}
