//! How the user's and the site's file are read, and what a file that cannot be read means.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use rustix::process::geteuid;

use super::file::File;
use crate::output::tell;

/// A longer file is no configuration.
pub(super) const LONGEST: u64 = 1 << 20;

pub(super) fn own() -> anyhow::Result<File> {
    let Some(path) = discnice_paths::config() else { return Ok(File::default()) };
    match discnice_paths::read_own(&path, LONGEST) {
        Ok(bytes) => File::parse_bytes(&bytes, &path),
        // Accounts of services have no home, or /dev/null.
        Err(error) if is_missing(&error) => Ok(File::default()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_ours(&path) => {
            Ok(File::default())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether there is no file, nor can there be one.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a file's folder is this user's. Another user's is not to be read where HOME was kept (su, setpriv).
fn is_ours(path: &Path) -> bool {
    let owner = path.parent().and_then(|folder| Some(folder.metadata().ok()?.uid()));
    owner == Some(geteuid().as_raw())
}

/// The site's file. One that is wrong is told of and not followed: users cannot mend it, and their jobs are to run.
pub(super) fn site() -> &'static Arc<File> {
    static SITE: OnceLock<Arc<File>> = OnceLock::new();
    SITE.get_or_init(|| Arc::new(read_site()))
}

pub(super) fn read_site() -> File {
    let path = Path::new(discnice_paths::SITE);
    let read = discnice_paths::read_site(path, LONGEST);
    let found = match read {
        Ok(bytes) => File::parse_bytes(&bytes, path),
        Err(error) if is_missing(&error) => return File::default(),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    found.unwrap_or_else(|error| {
        tell!("discnice: the site's settings are not used: {error:#}; tell its administrator");
        File::default()
    })
}
