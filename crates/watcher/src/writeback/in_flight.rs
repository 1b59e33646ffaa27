//! Stops processes until the disk has written most of what they had started to write. Exists for `eval/benches/beside.py`, job `child_anew`,
//! beside which reads of 4 KiB took 18.9 ms without it, and take 8.8.
//!
//! What a class that gives way has on its way to a disk delays others' reads and commits, however short the class runs
//! ([`discnice_regulator::Backlog`]). What is held from outside waits for that as a whole.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use discnice_estimator::blocks::PAGE;
use discnice_sys::pagecache;
use discnice_units::Moment;

use crate::process::local_files;
use crate::tuning;

/// What the processes wait for, by their ids.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    all: BTreeMap<u32, Wait>,
    due: Moment,
}

#[derive(Debug)]
struct Wait {
    /// Links and names of the files; nothing is kept open.
    files: Vec<PathBuf>,
    /// So many bytes may still be on their way.
    left: u64,
    until: Moment,
}

impl Wait {
    /// Whether it ends now. Files that are written are not looked at again.
    fn is_over(&mut self, now: Moment) -> bool {
        let mut bytes = 0;
        self.files.retain(|path| {
            let of_it = on_its_way(path).unwrap_or(0);
            bytes += of_it;
            of_it > 0
        });
        now >= self.until || bytes <= self.left
    }
}

/// Bytes of a file that are on their way to the disk. Where the kernel does not tell nothing is waited for.
fn on_its_way(path: &Path) -> Option<u64> {
    let opened = local_files::open_anew(path)?;
    let size = opened.metadata().ok()?.len();
    Some(pagecache::cachestat(opened.as_raw_fd(), 0, size).ok()?.writeback * PAGE)
}

impl InFlight {
    /// A process waits for these files.
    pub(crate) fn add(&mut self, now: Moment, id: u32, files: Vec<PathBuf>, left: u64) {
        self.all.insert(
            id,
            Wait { files, left, until: now.plus(tuning::writeback::IN_FLIGHT_LONGEST) },
        );
        self.due = now;
    }

    /// When to look next.
    pub(crate) fn due(&self) -> Option<Moment> {
        (!self.all.is_empty()).then_some(self.due)
    }

    /// Tells of those that need not wait any more; again of those that it could not tell of.
    pub(crate) fn go_on(&mut self, now: Moment, mut tell: impl FnMut(u32) -> bool) {
        if now >= self.due {
            self.due = now.plus(tuning::writeback::IN_FLIGHT_LOOK);
            self.all.retain(|id, wait| !wait.is_over(now) || !tell(*id));
        }
    }
}

/// What the holder knows of the processes that stand for it.
#[derive(Debug, Default)]
pub(crate) struct Standing(BTreeMap<u32, Stand>);

#[derive(Debug)]
struct Stand {
    until: Moment,
    /// Little is on its way any more.
    told: bool,
}

impl Standing {
    /// A process begins to stand. Those that stood for too long, or have ended, are forgotten.
    pub(crate) fn begin(&mut self, now: Moment, id: u32) {
        self.0.retain(|_, stand| now < stand.until);
        self.0.insert(
            id,
            Stand { until: now.plus(tuning::writeback::IN_FLIGHT_LONGEST), told: false },
        );
    }

    /// Notes that a process need not wait any more; one that does not stand is of no interest.
    pub(crate) fn note_told(&mut self, id: u32) {
        if let Some(stand) = self.0.get_mut(&id) {
            stand.told = true;
        }
    }

    /// Returns true, once, if a process need not wait any more.
    pub(crate) fn may_go(&mut self, id: u32) -> bool {
        let told = self.0.get(&id).is_some_and(|stand| stand.told);
        if told {
            self.0.remove(&id);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_do_not_stand_any_more_are_forgotten() {
        let (mut standing, begun) = (Standing::default(), Moment(1));
        for id in 0..1000 {
            standing.begin(begun, id);
            standing.note_told(id + 5000);
        }
        standing.note_told(7);
        assert!(standing.may_go(7) && !standing.may_go(7), "told once");
        assert!(!standing.may_go(8) && !standing.may_go(5007));
        standing.begin(begun.plus(tuning::writeback::IN_FLIGHT_LONGEST), 4711);
        assert_eq!(standing.0.len(), 1, "only the one that stands now");
        standing.note_told(8);
        assert!(!standing.may_go(8), "it was told too late");
    }
}
