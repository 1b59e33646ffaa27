//! What reading a tree costs a disk: how often its arm has to move.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::FileType;

use super::meta::open_quietly;
use super::tree::{Cursor, Tree};
use crate::fldc::extents;

/// Gaps up to this many bytes pass under the head about as fast as they could be read.
const SKIP: u64 = 128 << 10;

/// How a tree's files lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Regular files with data on the disk.
    pub files: u64,
    /// Their bytes on the disk.
    pub bytes: u64,
    /// Pieces in which they lie.
    pub extents: u64,
    /// Seeks when the files are read in layout order, one after the other.
    pub seeks: u64,
}

impl Survey {
    /// The best that a rewriting may hope for: each file in one piece, all in a row.
    #[must_use]
    pub fn ideal(&self) -> Self {
        Self { extents: self.files, seeks: u64::from(self.files > 0), ..*self }
    }

    /// Seconds that reading everything takes a disk with these figures.
    #[must_use]
    pub fn seconds(&self, seek_seconds: f64, bytes_per_second: f64) -> f64 {
        self.seeks as f64 * seek_seconds + self.bytes as f64 / bytes_per_second
    }
}

/// Surveys the tree at `root`; `None` where the file system does not tell.
pub fn survey(tree: &Tree, root: BorrowedFd<'_>) -> Option<Survey> {
    survey_with(tree, root, |_| None)
}

/// Surveys the tree at `root` as it would be with a copy in place of each member that `copy` opens one for.
pub fn survey_with(
    tree: &Tree,
    root: BorrowedFd<'_>,
    copy: impl Fn(usize) -> Option<OwnedFd>,
) -> Option<Survey> {
    let mut cursor = Cursor::new(tree, root);
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    let mut synced = false;
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.meta.kind() != FileType::RegularFile || !seen.insert(node.meta.ino) {
            continue;
        }
        let opened = copy(index).or_else(|| {
            let dir = cursor.directory_of(index).ok()?;
            open_quietly(dir, &node.name).ok()
        });
        // A file that vanishes or cannot be opened is missed by the refresh itself.
        let Some(file) = opened.map(File::from) else { continue };
        let mut pieces = extents(&file).ok()?;
        if pieces.is_empty() && node.meta.size > 0 && !synced {
            // Written of late, and not given a place yet.
            let _ = rustix::fs::syncfs(&file);
            synced = true;
            pieces = extents(&file).ok()?;
        }
        if !pieces.is_empty() {
            files.push(pieces);
        }
    }
    files.sort_unstable_by_key(|extents| extents[0].physical);
    let mut survey = Survey { files: files.len() as u64, ..Survey::default() };
    let mut head: Option<u64> = None;
    for extent in files.iter().flatten() {
        survey.extents += 1;
        survey.bytes += extent.length;
        let near =
            head.is_some_and(|head| extent.physical >= head && extent.physical - head <= SKIP);
        survey.seeks += u64::from(!near);
        head = Some(extent.physical + extent.length);
    }
    Some(survey)
}
