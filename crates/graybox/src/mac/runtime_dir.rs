//! The per-user folder for shared state.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

/// `$XDG_RUNTIME_DIR/discnice`, or `/tmp/discnice-UID` without that variable; made with mode 0700
/// if it is missing.
///
/// # Errors
/// `PermissionDenied` if it belongs to somebody else or others may enter it.
pub fn runtime_dir() -> io::Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let path = match std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(base) => PathBuf::from(base).join("discnice"),
        None => PathBuf::from(format!("/tmp/discnice-{uid}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
        let why = format!("{} is not a folder of yours with mode 0700", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(path)
}
