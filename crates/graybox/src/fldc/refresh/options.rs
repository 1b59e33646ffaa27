//! What a refresh is asked to do.

use std::ffi::OsString;

/// What to do.
#[derive(Default)]
pub struct Options<'a> {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Also files with one name here and hard links outside, which are then separated, and files of
    /// which the file system does not tell whether they are in use.
    pub force: bool,
    /// Exchange nothing if the files would then lie worse than now.
    pub only_better: bool,
    /// Paths below the directory in the order wanted; what is not named follows, small files
    /// first.
    pub order: &'a [OsString],
}

/// Told of progress: the step, bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(&'static str, u64, u64);
