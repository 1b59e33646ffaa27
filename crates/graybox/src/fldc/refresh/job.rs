//! One refresh: copy, sync, verify, exchange, and the same again for what changed meanwhile.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::AsFd;
use std::time::Duration;

use discnice_units::Bytes;

use super::copy::{self, Copied};
use super::error::{Context, RefreshError, Result};
use super::gain::{self, Survey};
use super::left::Why;
use super::meta::open_quietly;
use super::options::{Options, Progress};
use super::place::Place;
use super::report::RefreshReport;
use super::status::{Meta, stat};
use super::tree::{Cursor, Tree};
use super::work::Area;
use super::{busy, check, mounted, order};

/// Attempts at files that change or are in use, and the pause before each but the first.
const ROUNDS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// Lines shown of what is left as it is.
const LINES: usize = 20;

/// A refresh under way.
pub struct Job<'a> {
    place: &'a Place,
    /// The directory as it was scanned.
    pub tree: Tree,
    force: bool,
    /// How the files lay.
    pub before: Option<Survey>,
    /// Members yet to be rewritten.
    pub pending: Vec<usize>,
    left: Vec<(usize, Why)>,
    rewritten: Vec<usize>,
    /// How the copies lay, if that was worse than how the originals lie: then none was exchanged.
    worse: Option<Survey>,
    only_better: bool,
    /// What is to be told of the order given.
    note: Option<String>,
    /// Members exchanged for their copies, with the inode of the copy, that still have an original in the work area.
    unsettled: Vec<(usize, u64)>,
}

impl<'a> Job<'a> {
    /// Scans the directory and decides what is to be rewritten.
    ///
    /// # Errors
    /// Refused: nothing can be rewritten, or there is no room.
    pub fn begin(place: &'a Place, options: &Options<'_>) -> Result<Self> {
        let places = order::places(options.order);
        let root = place.dir.as_fd();
        let tree = Tree::scan(root, &|name, meta| order::rank(&places, name, meta))?;
        let note = order::check(&tree, &places)?;
        let mounted = mounted::below(root);
        let check::Plan { rewrite: pending, left } = check::plan(&tree, &mounted, options.force);
        let before = gain::survey(&tree, root);
        let job = Self {
            place,
            tree,
            force: options.force,
            before,
            pending,
            left,
            rewritten: Vec::new(),
            worse: None,
            only_better: options.only_better,
            note,
            unsettled: Vec::new(),
        };
        if job.pending.is_empty() && !job.left.is_empty() {
            return Err(RefreshError::Refused(check::shorten(job.lines(), LINES)));
        }
        match check::lack_of_space(&job.tree, &job.pending, root)? {
            Some(line) => Err(RefreshError::Refused(vec![line])),
            None => Ok(job),
        }
    }

    /// Rewrites what can be.
    ///
    /// # Errors
    /// Of what would go wrong with every file.
    pub fn run(&mut self, area: &Area<'_>, progress: Progress<'_>) -> Result<()> {
        for round in 0..ROUNDS {
            if round > 0 {
                std::thread::sleep(PAUSE);
                self.look_again();
            }
            let (mut again, last) = (Vec::new(), round + 1 == ROUNDS);
            let copied = self.copy(area, &mut again, progress)?;
            area.sync()?;
            let copied = self.verify(area, copied, &mut again, progress)?;
            if round == 0 && self.only_better {
                self.worse = self.worse_layout(area, &copied);
            }
            if self.worse.is_some() {
                return copy::discard(area, &copied);
            }
            self.exchange(area, &copied, &mut again)?;
            self.pending.clear();
            for (index, why) in again {
                if why.may_pass() && !last {
                    self.pending.push(index);
                } else {
                    self.left.push((index, why));
                }
            }
            if self.pending.is_empty() {
                break;
            }
            self.pending.sort_unstable();
        }
        Ok(())
    }

    /// Counts the files rewritten, and their bytes, after the work area was cleared: only that has
    /// settled the last of the originals.
    ///
    /// # Errors
    /// Refused if each file was left.
    pub fn finish(&mut self) -> Result<(u64, Bytes)> {
        for (index, copy) in std::mem::take(&mut self.unsettled) {
            let node = &self.tree.nodes[index];
            let dir = self.tree.open_directory(self.place.dir.as_fd(), node.parent);
            match dir.and_then(|dir| stat(dir.as_fd(), &node.name)) {
                Ok(meta) if meta.ino == copy => self.rewritten.push(index),
                Ok(_) => self.left.push((index, Why::InUse)),
                Err(error) => self.left.push((index, error.into())),
            }
        }
        let files = self.rewritten.len() as u64;
        let bytes = Bytes::new(check::bytes(&self.tree, &self.rewritten));
        if files == 0 && !self.left.is_empty() && self.worse.is_none() {
            return Err(RefreshError::Refused(check::shorten(self.lines(), LINES)));
        }
        Ok((files, bytes))
    }

    /// Looks at members that have changed, as they are now.
    fn look_again(&mut self) {
        for index in self.pending.clone() {
            let node = &self.tree.nodes[index];
            let dir = self.tree.open_directory(self.place.dir.as_fd(), node.parent);
            if let Ok(meta) = dir.and_then(|dir| stat(dir.as_fd(), &node.name)) {
                // A file that was replaced must still be one of those that are rewritten.
                let same_kind = (meta.kind(), meta.nlink, meta.uid)
                    == (node.meta.kind(), node.meta.nlink, node.meta.uid);
                if same_kind {
                    self.tree.nodes[index].meta = meta;
                }
            }
        }
    }

    /// Copies what is pending into the work area.
    fn copy(
        &self,
        area: &Area<'_>,
        again: &mut Vec<(usize, Why)>,
        progress: Progress<'_>,
    ) -> Result<Vec<Copied>> {
        let total = check::bytes(&self.tree, &self.pending);
        let (mut copied, mut done) = (Vec::new(), 0);
        let mut cursor = Cursor::new(&self.tree, self.place.dir.as_fd());
        for index in self.pending.iter().copied() {
            let node = &self.tree.nodes[index];
            let made = cursor.directory_of(index).map_err(Why::from).and_then(|dir| {
                copy::copy(area, (dir, &node.name), (index, &node.meta), self.force)
            });
            match made {
                Ok(copy) => copied.push(copy),
                Err(why) => self.note_or_fail("copy", index, why, again)?,
            }
            done += node.meta.allocated;
            progress("copying", done, total);
        }
        Ok(copied)
    }

    /// Returns how the files would lie with these copies, if reading them would take more seeks than it does now: on a
    /// disk with little free space in one piece.
    fn worse_layout(&self, area: &Area<'_>, copied: &[Copied]) -> Option<Survey> {
        let before = self.before?;
        let names: HashMap<usize, &CString> =
            copied.iter().map(|copy| (copy.index, &copy.name)).collect();
        let root = self.place.dir.as_fd();
        let after = gain::survey_with(&self.tree, root, |index| {
            names.get(&index).and_then(|name| open_quietly(area.fd(), name).ok())
        })?;
        (after.seeks > before.seeks).then_some(after)
    }

    /// Checks the copies; returns those that are right.
    fn verify(
        &self,
        area: &Area<'_>,
        copied: Vec<Copied>,
        again: &mut Vec<(usize, Why)>,
        progress: Progress<'_>,
    ) -> Result<Vec<Copied>> {
        let total = check::bytes(&self.tree, &self.pending);
        let (mut right, mut done) = (Vec::new(), 0);
        let mut cursor = Cursor::new(&self.tree, self.place.dir.as_fd());
        for copy in copied {
            let node = &self.tree.nodes[copy.index];
            let dir = cursor.directory_of(copy.index).map_err(Why::from);
            done += node.meta.allocated;
            match dir.and_then(|dir| copy.verify(area, (dir, &node.name))) {
                Ok(true) => right.push(copy),
                Ok(false) => return Err(RefreshError::Differs(self.tree.display(copy.index))),
                Err(why) => {
                    let unlinked = area.unlink(&copy.name);
                    unlinked.doing("clear", || area.shown())?;
                    self.note_or_fail("check the copy", copy.index, why, again)?;
                }
            }
            progress("checking", done, total);
        }
        Ok(right)
    }

    /// Notes why a file is left, or fails with what would happen to every other, too.
    fn note_or_fail(
        &self,
        action: &'static str,
        index: usize,
        why: Why,
        again: &mut Vec<(usize, Why)>,
    ) -> Result<()> {
        match why.is_of_all() {
            Some(error) => Err(error).doing(action, || self.tree.display(index)),
            None => {
                again.push((index, why));
                Ok(())
            }
        }
    }

    /// A line for each member that is left.
    fn lines(&self) -> Vec<String> {
        let in_use = self.left.iter().filter(|(_, why)| *why == Why::InUse);
        let in_use = in_use.map(|(index, _)| {
            let Meta { dev: (major, minor), ino, .. } = self.tree.nodes[*index].meta;
            ((rustix::fs::makedev(major, minor), ino), *index)
        });
        let users = busy::users(&in_use.collect());
        let line = |(index, why): &(usize, Why)| match users.get(index) {
            Some(process) => format!("{}: in use by process {process}", self.tree.display(*index)),
            None => format!("{}: {why}", self.tree.display(*index)),
        };
        self.left.iter().map(line).collect()
    }

    /// What was done, or would be.
    pub fn report(&self, files: u64, bytes: Bytes, after: Option<Survey>) -> RefreshReport {
        let (before, left) = (self.before, self.lines());
        RefreshReport {
            files,
            bytes,
            before,
            after,
            recovered: false,
            left,
            notes: self.note.iter().cloned().collect(),
            kept: false,
            worse: self.worse,
        }
    }
}

mod exchange;
#[cfg(test)]
mod tests;
