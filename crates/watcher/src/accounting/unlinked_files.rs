//! Charges what was dirtied in files without a name when it is written. Exists for `eval/benches/escapes.py`, row `restic`, where a
//! backup of 50 MB at 5 MiB/s lost ten of its forty seconds without it.
//!
//! Programs keep what they delete soon in files that they have unlinked already: restic its packs, before it stores
//! them. The account has those bytes when they are dirtied, and gives them back when the file is closed and most of
//! them never reached a disk. Charged at once, and taken back then, they cost the program the time in which it stood for
//! them, as a class keeps little unused allowance. So they are charged when they are written or given
//! back, up to a bound: the kernel writes what stays dirty for half a minute, at once.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_estimator::blocks::PAGE;
use discnice_ledger::{Class, Direction};
use discnice_sys::{file, pagecache};
use discnice_units::Moment;

use crate::process::{descriptors, local_files};
use crate::tuning;

/// No file is longer.
const WHOLE: u64 = i64::MAX as u64;

/// What of one process's account is held back.
#[derive(Debug, Default)]
pub(crate) struct UnlinkedFiles {
    /// What its account had as written when that was last looked at.
    seen: u64,
    /// Bytes.
    back: u64,
    /// What was dirty there before anything was charged.
    before: u64,
    /// It had such a file once: it is likely to have the next one soon.
    has: bool,
    /// When to look again, of one that had none, or beyond how many bytes.
    again: (Moment, u64),
}

impl UnlinkedFiles {
    /// Of a process that had so many bytes in its account as written before it was known.
    pub(crate) fn begun(id: u32, written: u64) -> Self {
        Self { seen: written, before: dirty(id), ..Self::default() }
    }

    /// How many of the `written` bytes in a process's account are not to be charged yet.
    pub(crate) fn of(&mut self, id: u32, class: &Class, written: u64, now: Moment) -> u64 {
        if written == self.seen && self.back == 0 || !class.is_limited() {
            self.seen = written;
            return 0;
        }
        let (at, beyond) = self.again;
        if self.has || now >= at || written > beyond {
            let rate = class.rule(Direction::Write).rate;
            let most = rate
                .units_in(tuning::accounting::UNLINKED_FOR)
                .min(tuning::accounting::UNLINKED_MOST);
            let found = dirty(id);
            self.has |= found > 0;
            self.before = self.before.min(found);
            self.back = (found - self.before).min(most);
            self.again = (
                now.plus(tuning::accounting::UNLINKED_AGAIN),
                written.saturating_add(rate.units_in(tuning::accounting::UNLINKED_AGAIN)),
            );
        }
        self.seen = written;
        self.back
    }

    /// All is to be charged: the process has ended.
    pub(crate) fn forget(&mut self) {
        *self = Self { again: (Moment::NEVER, u64::MAX), ..Self::default() };
    }
}

/// Bytes that are dirty in nameless files which the process has open for writing.
fn dirty(id: u32) -> u64 {
    let mut known = HashSet::new();
    let mut of = |path: &Path| {
        let is_candidate = descriptors::can_write(path)? && descriptors::is_unlinked(path)?;
        let found = is_candidate.then(|| local_files::status(path))??;
        // It may have been removed by one of its names only.
        let wanted = found.is_file() && found.nlink() == 0;
        if !wanted || !known.insert((found.dev(), found.ino())) {
            return None;
        }
        let opened = open(path)?;
        // Its size does not tell: that grows when a page, of up to 2 MiB, has been filled.
        let counts = pagecache::cachestat(opened.as_raw_fd(), 0, WHOLE).ok()?;
        Some(counts.dirty * PAGE)
    };
    descriptors::of(id, tuning::accounting::UNLINKED_DESCRIPTORS).filter_map(|path| of(&path)).sum()
}

/// Opened anew, if it lies on a disk: pages of memory alone are always dirty, and in no account.
fn open(path: &Path) -> Option<File> {
    local_files::open_anew(path).filter(|opened| !file::is_in_memory(opened.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use std::io::Read;
    use std::process::{Command, Stdio};

    /// What is dirty of a megabyte that a shell wrote into a file which it opened and removed in these ways.
    fn dirtied(remove: &str, folder: &str) -> u64 {
        let name = format!("{folder}/discnice-nameless-{}-{}", std::process::id(), remove.len());
        let script = format!(
            "exec 5>{name}; {remove} {name}; head -c 1048576 /dev/zero >&5; echo; read end; rm -f {name}"
        );
        let mut command = Command::new("sh");
        let command = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let found = dirty(shell.id());
        drop(shell.stdin.take());
        shell.wait().unwrap();
        found
    }

    #[test]
    fn only_what_has_no_name_and_lies_on_a_disk_is_found() {
        if pagecache::cachestat(0, 0, 1) == Err(discnice_sys::Errno(libc::ENOSYS)) {
            skip!("no cachestat(2)");
        }
        let nameless = dirtied("rm", "/var/tmp");
        // Pages of a large folio are dirty together, so that of a part of one all would count.
        assert!((900_000..=1 << 20).contains(&nameless), "{nameless}");
        assert_eq!(dirtied("true", "/var/tmp"), 0, "it has a name");
        assert_eq!(dirtied("rm -f", "/dev/shm"), 0, "it is in memory");
    }
}
