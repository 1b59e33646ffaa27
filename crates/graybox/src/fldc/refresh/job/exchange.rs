//! Exchanges files for their copies, and removes the originals.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Job;
use crate::fldc::refresh::copy::{Copied, discard};
use crate::fldc::refresh::error::{Context, Result};
use crate::fldc::refresh::left::Why;
use crate::fldc::refresh::marker::WorkFile;
use crate::fldc::refresh::place::cstring;
use crate::fldc::refresh::swap::{GRACE, Settled, Spot};
use crate::fldc::refresh::times;
use crate::fldc::refresh::tree::Cursor;
use crate::fldc::refresh::work::Area;

impl Job<'_> {
    /// Exchanges files for their copies and removes the originals.
    pub(super) fn exchange(
        &mut self,
        area: &Area<'_>,
        copied: &[Copied],
        again: &mut Vec<(usize, Why)>,
    ) -> Result<()> {
        let mut exchanged = Vec::new();
        let parent = |copy: &Copied| self.tree.nodes[copy.index].parent;
        for group in copied.chunk_by(|one, other| parent(one) == parent(other)) {
            exchanged.extend(self.exchange_in_directory(area, group, again)?);
        }
        if exchanged.is_empty() {
            return Ok(());
        }
        std::thread::sleep(GRACE);
        let mut cursor = Cursor::new(&self.tree, self.place.dir.as_fd());
        for (copy, changed) in exchanged {
            let name = &self.tree.nodes[copy.index].name;
            let settled = cursor.directory_of(copy.index).map_err(Why::from).and_then(|dir| {
                let spot = Spot { dir, name, area, file: &copy.name };
                spot.settle(&copy.staged, Some(changed), self.force)
            });
            match settled {
                Ok(Settled::Removed) => self.rewritten.push(copy.index),
                Ok(Settled::PutBack) => again.push((copy.index, Why::InUse)),
                // The end of the refresh looks at it once more and keeps it if it must.
                Ok(Settled::Kept) | Err(_) => self.unsettled.push((copy.index, copy.staged.new)),
            }
        }
        Ok(())
    }

    /// Exchanges files of one directory and preserves its modification time.
    fn exchange_in_directory<'c>(
        &self,
        area: &Area<'_>,
        group: &'c [Copied],
        again: &mut Vec<(usize, Why)>,
    ) -> Result<Vec<(&'c Copied, (i64, u32))>> {
        let Some(first) = group.first() else { return Ok(Vec::new()) };
        let parent = self.tree.nodes[first.index].parent;
        let opened = self.tree.open_directory(self.place.dir.as_fd(), parent);
        let opened = opened.and_then(|dir| times::before(dir.as_fd()).map(|before| (dir, before)));
        let (dir, before) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let why = if error == Errno::BUSY { Why::Changed } else { error.into() };
                return self.give_up(area, group, &why, again);
            }
        };
        let record = cstring(WorkFile::Touched(before).to_string().as_bytes());
        make_empty(area, &record)?;
        let (mut exchanged, mut replaced) = (Vec::new(), HashMap::new());
        for copy in group {
            let node = &self.tree.nodes[copy.index];
            let spot = Spot { dir: dir.as_fd(), name: &node.name, area, file: &copy.name };
            // Where it is not told where files lie, they may lie in memory (tmpfs), and a write by a mapping moves no time.
            let contents = self.before.is_none().then_some(&copy.hash);
            match spot.exchange(&copy.staged, &node.meta, contents, self.force) {
                Ok(changed) => {
                    replaced.insert(copy.staged.new, copy.staged.old);
                    exchanged.push((copy, changed));
                }
                Err(why) => {
                    // What came out instead of the original is looked at in the end.
                    if spot.inside() == Ok(copy.staged.new) {
                        area.unlink(&copy.name).doing("clear", || area.shown())?;
                    }
                    self.note_or_fail("exchange", copy.index, why, again)?;
                }
            }
        }
        times::restore(dir.as_fd(), &before, &replaced)
            .doing("keep the time of the directory", || self.tree.display(parent))?;
        area.unlink(&record).doing("clear", || area.shown())?;
        Ok(exchanged)
    }

    fn give_up<T>(
        &self,
        area: &Area<'_>,
        group: &[Copied],
        why: &Why,
        again: &mut Vec<(usize, Why)>,
    ) -> Result<Vec<T>> {
        discard(area, group)?;
        for copy in group {
            self.note_or_fail("exchange", copy.index, why.clone(), again)?;
        }
        Ok(Vec::new())
    }
}

fn make_empty(area: &Area<'_>, name: &CString) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = rustix::fs::openat(area.fd(), name, flags, Mode::RUSR);
    made.map(drop).doing("write", || area.shown())
}
