//! Processes that stand until the disk has written most of what they had started to write.
//!
//! What a class that gives way has on its way to a disk delays others' reads and commits, however short the class runs
//! ([`discnice_regulator::Backlog`]). What is held from outside waits for that as a whole.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use discnice_estimator::blocks::PAGE;
use discnice_sys::pagecache;
use discnice_units::Nanos;

use crate::descriptors;

/// Time between two looks.
pub(crate) const LOOK: Nanos = Nanos::from_millis(2);
/// No process stands for longer, whatever its disk does.
pub(crate) const LONGEST: Nanos = Nanos::from_millis(1_000);

/// What the processes wait for, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    all: BTreeMap<u32, Wait>,
    due: Nanos,
}

#[derive(Debug)]
struct Wait {
    /// Links to the files; nothing is kept open.
    files: Vec<PathBuf>,
    /// So many bytes may still be on their way.
    left: u64,
    until: Nanos,
}

impl Wait {
    fn is_over(&self, now: Nanos) -> bool {
        let on_their_way = self.files.iter().filter_map(|path| {
            let opened = descriptors::open_anew(path)?;
            let size = opened.metadata().ok()?.len();
            // Where the kernel does not tell nothing is waited for.
            Some(pagecache::cachestat(opened.as_raw_fd(), 0, size).ok()?.writeback * PAGE)
        });
        now >= self.until || on_their_way.sum::<u64>() <= self.left
    }
}

impl Awaited {
    /// A process waits for these files.
    pub(crate) fn add(&mut self, now: Nanos, id: u32, files: Vec<PathBuf>, left: u64) {
        self.all.insert(id, Wait { files, left, until: now.plus(LONGEST) });
        self.due = now;
    }

    /// When to look next.
    pub(crate) fn due(&self) -> Option<Nanos> {
        (!self.all.is_empty()).then_some(self.due)
    }

    /// Tells of those that need not wait any more; again of those that it could not tell of.
    pub(crate) fn go_on(&mut self, now: Nanos, mut tell: impl FnMut(u32) -> bool) {
        if now >= self.due {
            self.due = now.plus(LOOK);
            self.all.retain(|id, wait| !wait.is_over(now) || !tell(*id));
        }
    }
}
