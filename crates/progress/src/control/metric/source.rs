//! What a metric is read from.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use discnice_processes::tree::Tree;

/// Reads one metric of a running job.
pub trait Source {
    /// The counter now.
    ///
    /// # Errors
    /// Where the source has vanished or does not answer in time. The job is then let be.
    fn read(&mut self, tree: &Tree) -> io::Result<f64>;
}

/// Opens what must be a regular file: a pipe without a writer would block the regulator.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}
