//! A process's own I/O, from outside.
//!
//! `/proc/PID/io` is exact for the process with all its threads, living and dead, and its io_uring
//! workers. But the kernel adds to it the account of every child that the process waits for, and
//! that has been charged already. What the threads did tells the two apart.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use discnice_budget::member::Charged;
use discnice_sys::{procfs, time};
use discnice_units::Nanos;

use crate::process;

/// What the kernel accounts (proc(5), `/proc/PID/io`), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    /// Read from devices, read-ahead included.
    pub read: u64,
    /// Made dirty, or written directly.
    pub written: u64,
    /// Of what was made dirty: dropped, because its file was truncated or deleted.
    pub cancelled: u64,
}

impl From<Io> for Charged {
    fn from(io: Io) -> Self {
        Self { read: io.read, written: io.written }
    }
}

impl Io {
    fn parse(text: &str) -> Option<Self> {
        // The kernel's order is characters, calls, bytes; all but the last three lines are passed over.
        let mut lines = text.lines().skip_while(|line| !line.starts_with("read_bytes: "));
        let mut number = |label: &str| lines.next()?.strip_prefix(label)?.parse::<u64>().ok();
        Some(Self {
            read: number("read_bytes: ")?,
            written: number("write_bytes: ")?,
            cancelled: number("cancelled_write_bytes: ")?,
        })
    }

    fn zip(self, other: Self, each: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read: each(self.read, other.read),
            written: each(self.written, other.written),
            cancelled: each(self.cancelled, other.cancelled),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    fn min(self, other: Self) -> Self {
        self.zip(other, u64::min)
    }

    fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }
}

/// An account, kept open: one look costs about a microsecond.
#[derive(Debug)]
struct Source {
    path: String,
    /// `None` when descriptors were short: then it is opened for each look.
    file: Option<File>,
}

impl Source {
    fn open(path: String) -> io::Result<Self> {
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file: Some(file) }),
            Err(error) if is_exhausted(&error) => Ok(Self { path, file: None }),
            Err(error) => Err(error),
        }
    }

    fn read(&self) -> io::Result<Io> {
        let mut text = [0; 512];
        let length = match &self.file {
            Some(file) => file.read_at(&mut text, 0)?,
            None => File::open(&self.path)?.read_at(&mut text, 0)?,
        };
        let text = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
        Io::parse(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// The accounts of a process's living threads.
#[must_use]
pub fn threads(id: u32) -> HashMap<u32, Io> {
    let io = |thread| Io::parse(&fs::read_to_string(format!("/proc/{id}/task/{thread}/io")).ok()?);
    process::threads(id).filter_map(|thread| Some((thread, io(thread)?))).collect()
}

fn sum<'a>(accounts: impl IntoIterator<Item = &'a Io>) -> Io {
    accounts.into_iter().fold(Io::default(), |sum, io| sum.plus(*io))
}

/// What of a process's new bytes none of its threads did: children, or threads that ended. The process may have gone
/// on before its threads were asked; those bytes come again with its next account.
fn beyond(new: Io, by_threads: Io, early: &mut Io) -> Io {
    let known = early.plus(by_threads);
    *early = known.minus(new);
    new.minus(known)
}

/// Whether the process has waited for a child: only then the kernel has added anything to it. A
/// child that was waited for leaves its page faults with its parent; none ever ran without one.
fn has_reaped(id: u32) -> bool {
    procfs::stat(id).is_none_or(|stat| stat.children_faults > 0)
}

/// A process's own account.
#[derive(Debug)]
pub struct OwnAccount {
    id: u32,
    source: Source,
    /// The process's account at the last look, with its children's.
    seen: Io,
    /// The part that is its own.
    own: Io,
    /// Processor time that the process had had at some moment before that look.
    ran: Option<Nanos>,
    /// What its threads had done at the last look; `None` while it never had a child.
    threads: Option<HashMap<u32, Io>>,
    /// What threads were seen to have done that the process's account, which is read before theirs, did not have yet.
    early: Io,
    /// What of children's accounts, charged to them, is still to arrive in the process's.
    coming: Io,
    /// What no living thread did, nor any child that is known to have ended; the process's own unless such a child is
    /// told of before the next look.
    unclaimed: Io,
    rest: Rest,
}

/// Owner of the I/O that no living thread of a process did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// That of children, as far as they are known to have been charged; else the process's.
    Known,
    /// Always others': the children charge themselves, and we are not told.
    Children,
}

impl OwnAccount {
    /// Opens the account of process `id`, of which at least `charged` is its own.
    ///
    /// # Errors
    /// It is gone, or hides its account.
    pub fn open(id: u32, charged: Charged, rest: Rest) -> io::Result<Self> {
        let source = Source::open(format!("/proc/{id}/io"))?;
        let seen = source.read()?;
        let threads = (rest == Rest::Children || has_reaped(id)).then(|| threads(id));
        let own = threads.as_ref().map_or(seen, |threads| sum(threads.values()));
        let [early, coming, unclaimed] = [Io::default(); 3];
        let ran = None;
        let mut account =
            Self { id, source, seen, own, ran, threads, early, coming, unclaimed, rest };
        account.raise(charged);
        Ok(account)
    }

    /// Reads the process's own I/O once. A process that charged itself all that the kernel
    /// accounts, with its children's, need not be looked at thread by thread.
    ///
    /// # Errors
    /// As [`OwnAccount::open`].
    pub fn once(id: u32, charged: Charged, rest: Rest) -> io::Result<Io> {
        let io = procfs::io(id).ok_or(io::ErrorKind::NotFound)?;
        let [read, written] = io.bytes;
        if read <= charged.read && written <= charged.written {
            return Ok(Io { read: charged.read, written: charged.written, cancelled: 0 });
        }
        Self::open(id, charged, rest).map(|account| account.own())
    }

    /// At least so much is the process's own: it said so itself.
    pub fn raise(&mut self, charged: Charged) {
        self.own = self.own.max(Io { read: charged.read, written: charged.written, cancelled: 0 });
    }

    /// From now on, what no living thread did is treated like this.
    pub fn set_rest(&mut self, rest: Rest) {
        self.rest = rest;
        if rest == Rest::Children {
            self.expect_children();
        }
    }

    /// What the process did by itself since it was born, as far as known.
    #[must_use]
    pub fn own(&self) -> Io {
        self.own
    }

    /// Whether the process did nothing since the last look, as none of its threads ran: five times as cheap as
    /// a look. Of one that runs for the first time, that may show up to a tick of the kernel later. Unless it did
    /// nothing, a look has to follow.
    #[must_use]
    pub fn has_slept(&mut self) -> bool {
        let ran = time::of_process(self.id);
        let before = std::mem::replace(&mut self.ran, ran);
        ran.is_some() && ran == before
    }

    /// Processor time that the process had had when [`Self::own`] was right, if that is known.
    #[must_use]
    pub fn ran(&self) -> Option<Nanos> {
        self.ran
    }

    /// Whether the kernel's account is the one that was seen last; cheaper than to look again.
    ///
    /// # Errors
    /// `ESRCH` when the process is gone.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(self.source.read()? == self.seen)
    }

    /// Looks again; what no child has claimed since the last look is the process's own.
    ///
    /// # Errors
    /// `ESRCH` when the process is gone.
    pub fn look(&mut self) -> io::Result<Io> {
        let before = self.unclaimed;
        self.update()?;
        self.unclaimed = self.unclaimed.minus(before);
        self.own = self.own.plus(before);
        Ok(self.own)
    }

    /// Looks again, and leaves to children what they may still claim.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn update(&mut self) -> io::Result<()> {
        let seen = self.source.read()?;
        let new = seen.minus(std::mem::replace(&mut self.seen, seen));
        if new == Io::default() {
            return Ok(());
        }
        let own = match &mut self.threads {
            None => new,
            Some(known) => {
                let now = threads(self.id);
                let before = |thread| known.get(thread).copied().unwrap_or_default();
                let by_threads =
                    sum(&now.iter().map(|(t, io)| io.minus(before(t))).collect::<Vec<_>>());
                *known = now;
                let rest = beyond(new, by_threads, &mut self.early);
                let children = match self.rest {
                    Rest::Known => rest.min(self.coming),
                    Rest::Children => rest,
                };
                self.coming = self.coming.minus(children);
                self.unclaimed = self.unclaimed.plus(rest.minus(children));
                by_threads
            }
        };
        self.own = self.own.plus(own);
        Ok(())
    }

    /// Whether the process may have waited for a child that ended unnoticed: look at its children now, and then at it
    /// again.
    #[must_use]
    pub fn may_be_bereaved(&self) -> bool {
        self.unclaimed != Io::default()
    }

    /// The process has a child: what the kernel will add of it must be told from its own.
    pub fn expect_children(&mut self) {
        if self.threads.is_none() {
            self.threads = Some(threads(self.id));
        }
    }

    /// A child has ended that leaves so much: that arrives when the process waits for it, if it has not done so
    /// already.
    pub fn inherit(&mut self, left: Io) {
        self.expect_children();
        let arrived = self.unclaimed.min(left);
        self.unclaimed = self.unclaimed.minus(arrived);
        self.coming = self.coming.plus(left.minus(arrived));
    }

    /// The process has ended, and so have all of its children that are known to have: the rest is its own.
    pub fn settle(&mut self) {
        self.own = self.own.plus(std::mem::take(&mut self.unclaimed));
    }

    /// What a process that has ended leaves to its parent's account: its own and that of the children that it waited
    /// for, with all that these left.
    #[must_use]
    pub fn left(&self) -> Io {
        self.seen.max(self.own).plus(self.coming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// A shell with a child that writes `child` MiB, and that then itself writes `own` MiB.
    fn shell(folder: &std::path::Path, child: u32, own: u32) -> std::process::Child {
        let script = format!(
            "read go; dd if=/dev/zero of=a bs=1M count={child} status=none; read go; \
             exec dd if=/dev/zero of=b bs=1M count={own} status=none"
        );
        let mut command = Command::new("sh");
        command.current_dir(folder).args(["-c", &script]).stdin(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn what_threads_did_between_two_looks_counts_once() {
        let read = |read| Io { read, ..Io::default() };
        let mut early = Io::default();
        assert_eq!(beyond(read(100), read(150), &mut early), read(0));
        assert_eq!(beyond(read(60), read(20), &mut early), read(0), "50 were seen before");
        assert_eq!(beyond(read(10), read(0), &mut early), read(0), "and so were these");
        assert_eq!(beyond(read(30), read(0), &mut early), read(30), "of a child");
    }

    #[test]
    fn a_process_that_slept_did_nothing() {
        use std::io::Write;
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut child = shell(folder.path(), 1, 0);
        std::thread::sleep(Duration::from_millis(50));
        let mut account = OwnAccount::open(child.id(), Charged::default(), Rest::Known).unwrap();
        assert!(!account.has_slept(), "nothing is known of it yet");
        account.look().unwrap();
        assert!(account.has_slept() && account.has_slept());
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(!account.has_slept(), "it had a child");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!account.has_slept(), "it is gone");
    }

    #[test]
    fn a_childs_account_is_not_the_parents() {
        is_not_the_parents(true);
    }

    #[test]
    fn nor_is_that_of_a_process_that_is_seen_to_end_late() {
        is_not_the_parents(false);
    }

    #[test]
    fn what_no_child_claims_is_ones_own() {
        // Not this process's, in which other tests write at the same time.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut child = shell(folder.path(), 1, 0);
        await_sleep(child.id());
        let mut account = OwnAccount::open(child.id(), Charged::default(), Rest::Known).unwrap();
        let (before, rest) = (account.own(), Io { read: 5 << 20, ..CHILD });
        account.unclaimed = rest;
        account.inherit(Io { read: 1 << 20, ..CHILD });
        assert_eq!(account.coming, Io::default());
        assert!(
            account.look().unwrap().read >= before.read + (4 << 20) && !account.may_be_bereaved()
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until a process is blocked.
    fn await_sleep(id: u32) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        // Behind its name, which is in brackets.
        while !state().rsplit_once(") ").unwrap().1.starts_with('S') {
            assert!(Instant::now() < deadline, "it goes on: {}", state());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    const CHILD: Io = Io { read: 0, written: 4 << 20, cancelled: 0 };

    /// Tests a child with an end that is reported before what it did arrives, or after that.
    fn is_not_the_parents(told: bool) {
        use std::io::Write;
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut child = shell(folder.path(), 4, 0);
        std::thread::sleep(Duration::from_millis(50));
        let mut account = OwnAccount::open(child.id(), Charged::default(), Rest::Known).unwrap();
        account.expect_children();
        if told {
            account.inherit(CHILD);
        }
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while account.seen.written < 4 << 20 {
            assert!(Instant::now() < deadline, "{account:?}: the kernel adds what the child did");
            std::thread::sleep(Duration::from_millis(10));
            let own = account.look().unwrap();
            assert!(own.written < 1 << 20, "{own:?}: the child's 4 MiB are the child's");
        }
        if !told {
            assert!(account.may_be_bereaved());
            account.inherit(CHILD);
        }
        let own = account.look().unwrap();
        assert!(own.written < 1 << 20, "{own:?}: the child's 4 MiB are the child's");
        let later = OwnAccount::open(child.id(), Charged::default(), Rest::Known).unwrap();
        assert!(later.own().written < 1 << 20, "{later:?}: also for one who comes later");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
