//! Counts files that members created. Exists for `eval/benches/escapes.py`, row `busybox untar`, where `status` accounted for 96.6 % of the
//! device's bytes without it, and for 99.5 to 99.9 % with it.
//!
//! They are counted in the folders that are watched ([`crate::writeback::closed_files`]).
//!
//! The kernel charges no process for what a file system writes for them besides (journal, inode
//! tables). Our library counts them where it is; here they are counted from outside, by the process
//! that writes back, which does not share the class's memory: it tells through a socket. Files that
//! other processes make in such a folder are counted with them.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use discnice_estimator::file_systems::TINY;
use discnice_ledger::Class;

use crate::writeback::messages::{Count, News};

/// Files made, by the nonce of a class and the device number of their file system, that were not told yet.
#[derive(Debug, Default)]
pub(crate) struct Made(HashMap<(u64, u64), Count>);

impl Made {
    /// One more.
    pub(crate) fn note(&mut self, class: u64, device: u64) {
        self.add((class, device), Count { files: 1, tinies: 0 });
    }

    /// One that was noted was found like this when it was closed.
    pub(crate) fn note_closed(&mut self, class: u64, found: &Metadata) {
        if (1..=TINY).contains(&found.len()) {
            self.add((class, found.dev()), Count { files: 0, tinies: 1 });
        }
    }

    /// One more, which was not seen being made or closed.
    pub(crate) fn note_found(&mut self, class: u64, found: &Metadata) {
        self.note(class, found.dev());
        self.note_closed(class, found);
    }

    /// Adds what was told of a class and a file system.
    pub(crate) fn add(&mut self, key: (u64, u64), more: Count) {
        let known = self.0.entry(key).or_default();
        known.files = known.files.saturating_add(more.files);
        known.tinies = known.tinies.saturating_add(more.tinies);
    }

    /// Tells; what cannot be told now is told the next time.
    pub(crate) fn tell(&mut self, mut tell: impl FnMut(News) -> bool) {
        self.0.retain(|(class, device), count| {
            !tell(News::Made { class: *class, device: *device, count: *count })
        });
    }

    /// Of a class, on all file systems, and how many of these are tiny.
    #[cfg(test)]
    pub(crate) fn files(&self, class: u64) -> (u64, u64) {
        let own = self.0.iter().filter(|((whose, _), _)| *whose == class);
        own.fold((0, 0), |sum, (_, count)| (sum.0 + count.files, sum.1 + count.tinies))
    }

    /// Enters those of a class with its file systems. What it writes through daemons was counted where it did so.
    pub(crate) fn enter(&mut self, class: &Class) {
        // As a rule: then the class is not touched.
        if self.0.is_empty() {
            return;
        }
        let file_systems = class.estimation().file_systems();
        let by_daemons = file_systems.iter().any(|fs| fs.served().is_some());
        self.0.retain(|(whose, device), count| {
            let own = *whose == class.nonce();
            if own
                && !by_daemons
                && let Some(fs) = file_systems.get(file_systems.slot(*device))
            {
                fs.made_outside(count.files, count.tinies);
            }
            !own
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_told_as_far_as_it_is_taken() {
        let (mut here, mut there) = (Made::default(), Made::default());
        (0..10_000).for_each(|device| here.note(1, device));
        (0..10_000).for_each(|device| here.note(2, device));
        let pass = |here: &mut Made, there: &mut Made| {
            let mut room = 6_000;
            here.tell(|news| {
                let News::Made { class, device, count } = news else { panic!("{news:?}") };
                room -= 1;
                let taken = room >= 0;
                taken.then(|| there.add((class, device), count)).is_some()
            });
        };
        while !here.0.is_empty() {
            pass(&mut here, &mut there);
        }
        here.note(1, 5);
        pass(&mut here, &mut there);
        assert_eq!(there.0.len(), 20_000);
        here.note_closed(2, &tempfile::tempfile().unwrap().metadata().unwrap());
        let tiny = tempfile::NamedTempFile::new().unwrap();
        for size in [0, 1, TINY, TINY + 1] {
            tiny.as_file().set_len(size).unwrap();
            here.note_closed(2, &tiny.as_file().metadata().unwrap());
        }
        pass(&mut here, &mut there);
        assert_eq!((there.files(1), there.files(2)), ((10_001, 0), (10_000, 2)));
    }
}
