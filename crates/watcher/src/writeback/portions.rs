//! Writes back what a process dirtied at once in portions, at the pace at which its class pays. Exists for `eval/benches/attach.py`, column
//! `disk` of rsync, where 1 GB/s was written in the first 300 ms without it.
//!
//! Restic stores a pack of 16 MiB within milliseconds, and then stands for seconds until that is paid for. Started as a
//! whole, its write-back would be one burst, and the disk idle for the rest of that time.
//!
//! Nothing is kept open between two portions, so that what is waited for can be deleted, executed and unmounted.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use discnice_estimator::blocks::PAGE;
use discnice_ledger::{Class, Direction};
use discnice_regulator::write_back_portion;
use discnice_sys::{file, pagecache};
use discnice_units::{Moment, Nanos};

use crate::process::local_files;
use crate::tuning;

/// At which pace what a class dirtied is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Tells the class from others.
    pub(crate) class: u64,
    /// Bytes that are written at a time.
    pub(crate) portion: u64,
    /// How long the class pays for them.
    pub(crate) period: Nanos,
}

impl Pace {
    /// That of a class.
    pub(crate) fn of(class: &Class) -> Self {
        let portion = write_back_portion(class);
        let period = class.rule(Direction::Write).rate.time_for(portion);
        Self { class: class.nonce(), portion, period }
    }

    /// Whether nothing holds the class: what it dirtied is written back at once.
    pub(crate) fn is_free(self) -> bool {
        self.period == Nanos(0)
    }

    /// How long the class pays for so many bytes.
    fn time_for(self, bytes: u64) -> Nanos {
        Nanos(self.period.0.saturating_mul(bytes) / self.portion.max(1))
    }
}

/// The files of each class that wait.
#[derive(Debug, Default)]
pub(crate) struct Portions(HashMap<u64, Queue>);

#[derive(Debug)]
struct Queue {
    pace: Pace,
    /// When the last portion was due, and how many bytes it had.
    last: (Moment, u64),
    files: VecDeque<Spread>,
}

impl Queue {
    /// When the next portion is due: by the pace of now, as a class may be let go meanwhile.
    fn due(&self) -> Moment {
        let (at, bytes) = self.last;
        at.plus(self.pace.time_for(bytes))
    }
}

/// A file that is written back bit by bit.
#[derive(Debug)]
struct Spread {
    /// Links and names that led to it.
    paths: Vec<PathBuf>,
    key: (u64, u64),
    /// Where to go on.
    offset: u64,
}

fn key(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl Portions {
    /// Takes a file of which more is dirty than should be written at once. Fails with the paths to
    /// it if it is less, or the kernel does not tell.
    pub(crate) fn take(
        &mut self,
        now: Moment,
        pace: Pace,
        found: &Metadata,
        paths: Vec<PathBuf>,
    ) -> Result<(), Vec<PathBuf>> {
        let queue = self.0.get_mut(&pace.class);
        if let Some(queue) = queue {
            queue.pace = pace;
            if let Some(known) = queue.files.iter_mut().find(|known| known.key == key(found)) {
                (known.paths, known.offset) = (paths, 0);
                return Ok(());
            }
        }
        if found.size() <= tuning::writeback::PORTIONS_AT_ONCE * pace.portion {
            return Err(paths);
        }
        let spread = Spread { paths, key: key(found), offset: 0 };
        let much = spread.open().is_some_and(|(opened, size)| {
            dirty(&opened, 0, size)
                .is_some_and(|dirty| dirty > tuning::writeback::PORTIONS_AT_ONCE * pace.portion)
        });
        if !much {
            return Err(spread.paths);
        }
        let queue = || Queue { pace, last: (now, 0), files: VecDeque::new() };
        self.0.entry(pace.class).or_insert_with(queue).files.push_back(spread);
        Ok(())
    }

    /// When there is something to do next.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.0.values().map(Queue::due).min()
    }

    /// Starts what is due.
    pub(crate) fn go_on(&mut self, now: Moment) {
        self.0.retain(|_, queue| {
            while let due = queue.due()
                && due <= now
                && let Some(first) = queue.files.front_mut()
            {
                match first.go_on(queue.pace.portion) {
                    // A late portion does not hurry the next.
                    Some(started) => queue.last = (due.max(now.minus(queue.pace.period)), started),
                    None => drop(queue.files.pop_front()),
                }
            }
            !queue.files.is_empty()
        });
    }
}

impl Spread {
    /// The file and its size, if it can still be found.
    fn open(&self) -> Option<(File, u64)> {
        let open = |path: &PathBuf| {
            let opened = local_files::open_anew(path)?;
            let found = opened.metadata().ok()?;
            (key(&found) == self.key).then_some((opened, found.size()))
        };
        self.paths.iter().find_map(open)
    }

    /// Starts the next portion; returns how many bytes that were, `None` when there is none. Pages are written
    /// together that were dirtied together (large folios).
    fn go_on(&mut self, portion: u64) -> Option<u64> {
        let (opened, size) = self.open()?;
        let from = first_dirty(&opened, self.offset, size, portion)?;
        let before = dirty(&opened, from, size - from)?;
        let _ = file::start_write_back(opened.as_raw_fd(), from, portion);
        let after = dirty(&opened, from, size - from)?;
        self.offset = from + portion;
        Some(before.saturating_sub(after))
    }
}

/// Dirty bytes in a range.
fn dirty(opened: &File, from: u64, length: u64) -> Option<u64> {
    Some(pagecache::cachestat(opened.as_raw_fd(), from, length).ok()?.dirty * PAGE)
}

/// Where a portion begins that has the first dirty page behind `from`.
fn first_dirty(opened: &File, mut from: u64, size: u64, portion: u64) -> Option<u64> {
    let is_dirty = |from, length| dirty(opened, from, length).is_some_and(|dirty| dirty > 0);
    let mut length = size.checked_sub(from).filter(|length| is_dirty(from, *length))?;
    while length > portion.max(2 * PAGE) {
        let half = length / 2 / PAGE * PAGE;
        if is_dirty(from, half) {
            length = half;
        } else {
            (from, length) = (from + half, length - half);
        }
    }
    Some(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use std::io::Write;

    const PORTION: u64 = 128 << 10;

    /// A file of eight portions that are all dirty, as far as that can be had and seen.
    fn dirtied() -> Option<tempfile::NamedTempFile> {
        let mut named = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        (0..8).for_each(|_| named.write_all(&[1; PORTION as usize]).unwrap());
        let all = dirty(named.as_file(), 0, 1 << 20) == Some(1 << 20);
        all.then_some(named)
    }

    #[test]
    fn much_is_written_in_portions_when_it_is_their_turn() {
        let Some(named) = dirtied() else {
            skip!("no cachestat(2), or the file system writes by itself at once")
        };
        let left = || dirty(named.as_file(), 0, 1 << 20);
        let (mut paced, now) = (Portions::default(), Moment::FIRST.plus(Nanos::SECOND));
        let pace = Pace { class: 7, portion: PORTION, period: Nanos::from_millis(100) };
        let found = named.as_file().metadata().unwrap();
        let take = |paced: &mut Portions| paced.take(now, pace, &found, vec![named.path().into()]);
        assert!(take(&mut paced).is_ok() && take(&mut paced).is_ok(), "it is taken once");
        for portions in 1..=8 {
            let due = paced.due().unwrap();
            assert!(due <= now.plus(Nanos::from_millis(100 * (portions - 1))), "{due:?}");
            paced.go_on(due.minus(Nanos(1)));
            paced.go_on(due);
            assert_eq!(left(), Some((8 - portions) * PORTION));
        }
        paced.go_on(paced.due().unwrap());
        assert_eq!(paced.due(), None);
        assert!(take(&mut paced).is_err(), "nothing is dirty");
    }

    #[test]
    fn what_waits_for_its_turn_is_written_at_once_when_its_class_is_let_go() {
        let Some(named) = dirtied() else {
            skip!("no cachestat(2), or the file system writes by itself at once")
        };
        let left = || dirty(named.as_file(), 0, 1 << 20);
        let (mut paced, now) = (Portions::default(), Moment::FIRST.plus(Nanos::SECOND));
        let held = Pace { class: 7, portion: PORTION, period: Nanos::SECOND };
        let found = named.as_file().metadata().unwrap();
        let take = |paced: &mut Portions, pace| {
            paced.take(now, pace, &found, vec![named.path().into()]).is_ok()
        };
        assert!(take(&mut paced, held));
        paced.go_on(now);
        assert_eq!(left(), Some(7 * PORTION));
        assert!(take(&mut paced, Pace { period: Nanos(0), ..held }));
        paced.go_on(now);
        assert_eq!((left(), paced.due()), (Some(0), None));
    }

    #[test]
    fn processes_that_are_gone_are_forgotten() {
        let named = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let spread = |paths| Spread { paths, key: (1, 2), offset: 0 };
        assert!(spread(vec![named.path().into()]).open().is_none(), "another file");
        assert!(spread(vec!["/nowhere".into()]).go_on(PORTION).is_none());
    }
}
