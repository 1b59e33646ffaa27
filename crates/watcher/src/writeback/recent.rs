//! Files that were closed while nothing held their class: what a process that closes each file at once (rclone, tar) has on
//! its way to the disk when it is told to wait for that.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::portions::Pace;
use crate::tuning;

/// Files that are being written and that nothing has waited for yet, each with its class.
#[derive(Debug, Default)]
pub(super) struct Recent(HashSet<(u64, PathBuf)>);

impl Recent {
    /// Remembers a file if nothing holds its class: one that is held pays for what it writes, and does not wait for it.
    pub(super) fn note(&mut self, path: &Path, pace: Pace) {
        if pace.is_free() {
            if self.0.len() >= tuning::writeback::CLOSED_FILES {
                // Those of long ago are on the disk.
                self.0.clear();
            }
            self.0.insert((pace.class, path.into()));
        }
    }

    /// The files of a class, which are forgotten.
    pub(super) fn take(&mut self, pace: Pace) -> impl Iterator<Item = PathBuf> {
        self.0.extract_if(move |(class, _)| *class == pace.class).map(|(_, path)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_units::Nanos;

    #[test]
    fn files_of_a_class_that_nothing_holds_are_waited_for_once() {
        let free = Pace { class: 1, portion: 1 << 20, period: Nanos(0) };
        let (other, held) = (Pace { class: 2, ..free }, Pace { period: Nanos::SECOND, ..free });
        let mut recent = Recent::default();
        recent.note(Path::new("/held"), held);
        for path in ["/b", "/a", "/b"] {
            recent.note(Path::new(path), free);
            recent.note(Path::new("/other"), other);
        }
        let mut files: Vec<PathBuf> = recent.take(free).collect();
        files.sort();
        assert_eq!(files, [Path::new("/a"), Path::new("/b")]);
        assert_eq!(recent.take(free).count(), 0);
        assert_eq!(recent.take(other).count(), 1);
    }

    #[test]
    fn a_class_that_never_waits_does_not_fill_the_memory() {
        let free = Pace { class: 1, portion: 1 << 20, period: Nanos(0) };
        let mut recent = Recent::default();
        for number in 0..10 * tuning::writeback::CLOSED_FILES + 2 {
            recent.note(&PathBuf::from(number.to_string()), free);
        }
        assert_eq!(recent.take(free).count(), 2, "the newest");
    }
}
