//! The calls that are neither held nor observed: in a class without any threshold, on what is
//! neither a disk nor a network, and most of those on names and directories while all is cached.
//!
//! They are counted before they are made, by what they ask for, so that nothing is left to do after
//! them: libc's function is jumped to. A call that these functions decline takes the long way
//! (`calls`); so does every one that is due for a look at the account.
//!
//! Each hook asks [`unheld`] first, and then, in another function, [`held`]: what the first
//! question needs lies in few cache lines, which the kernel has often driven out since the last
//! call.

use crate::engine;

/// Returns true if the class does not track dirty pages of files.
#[inline(always)]
fn forgets() -> bool {
    engine::class().is_some_and(|class| class.estimation().regions().is_unused())
}

/// Returns true if files that were opened to be read must be looked at.
#[inline(always)]
fn protects_cache() -> bool {
    engine::class().is_some_and(discnice_ledger::Class::protects_cache)
}

/// Nothing at all holds this process.
pub mod unheld {
    use discnice_ledger::Class;

    use super::engine;
    use crate::files;
    use crate::thread::local;

    #[inline(always)]
    fn passes_named() -> bool {
        let thread = &local().thread;
        thread.names.count_unlimited().is_none() && thread.countdown.count_unlimited(0).is_none()
    }

    #[inline(always)]
    fn is_unheld() -> bool {
        engine::class().is_some_and(Class::is_unheld)
    }

    /// Returns true if a call that moves at most `count` bytes through a descriptor passes.
    #[inline(always)]
    pub fn transfer(fd: i32, count: usize) -> bool {
        is_unheld()
            && files::was_never_shaped(fd)
            && local().thread.countdown.count_unlimited(count).is_none()
    }

    /// Returns true if a write of at most `count` bytes passes.
    #[inline(always)]
    pub fn write(fd: i32, count: usize) -> bool {
        transfer(fd, count)
    }

    /// Returns true if a call that reads a directory passes.
    #[inline(always)]
    pub fn metadata() -> bool {
        is_unheld() && local().thread.countdown.count_unlimited(0).is_none()
    }

    /// Returns true if a call that returns a directory entry passes.
    #[inline(always)]
    pub fn list() -> bool {
        metadata()
    }

    /// Returns true if a call on names or inodes passes.
    #[inline(always)]
    pub fn operation() -> bool {
        is_unheld() && passes_named()
    }

    /// Returns true if a call that unlinks files passes: dirty pages are not tracked.
    #[inline(always)]
    pub fn delete() -> bool {
        local().thread.deletions.note_removal();
        super::forgets() && operation()
    }

    /// Returns true if a call of open(2) with these flags passes.
    #[inline(always)]
    pub fn open(flags: i32) -> bool {
        flags & libc::O_TRUNC == 0 && !super::protects_cache() && operation()
    }

    /// Returns true if a call that moves a descriptor's offset passes: offsets are not tracked.
    #[inline(always)]
    pub fn seek(_: i32) -> bool {
        is_unheld()
    }

    /// Returns true if a call that closes a descriptor passes: nothing is known about the
    /// descriptor.
    #[inline(always)]
    pub fn close(fd: i32) -> bool {
        files::near(fd).is_some_and(discnice_regulator::File::is_blank) && metadata()
    }

    /// Returns true if fcntl(2) passes: only those commands matter that duplicate a descriptor or
    /// change how it writes.
    #[inline(always)]
    pub fn control(command: i32) -> bool {
        !matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETFL)
    }
}

/// Something may hold it, but not this call, and no trace runs: `Class::is_held_on_disk_alone` is false then.
pub mod held {
    use discnice_ledger::Class;
    use discnice_regulator::File;

    use super::engine;
    use crate::thread::local;
    use crate::{faults, files, trace};

    /// Thresholds of disk traffic alone hold the process, and no page faults are waited for.
    #[inline(always)]
    fn is_held_on_disk_alone() -> bool {
        engine::class().is_some_and(Class::is_held_on_disk_alone) && !faults::any()
    }

    /// Counts a call on names that is not timed, if it may pass so.
    #[inline(always)]
    fn passes_untimed() -> bool {
        let thread = &local().thread;
        let passes = thread.allows_untimed();
        if passes {
            thread.countdown.count_untimed();
        }
        passes
    }

    /// Counts a metadata operation that is not timed, if it may pass so.
    #[inline(always)]
    fn passes_named_untimed() -> bool {
        local().thread.names.count_limited().is_none() && passes_untimed()
    }

    /// Deducts a write, if it may pass because its thread deletes what it writes.
    #[inline(always)]
    fn runs_ahead(count: usize) -> bool {
        let deletions = &local().thread.deletions;
        let passes = deletions.cover(count);
        if passes {
            deletions.deduct(count);
        }
        passes
    }

    /// Returns true if a call through a descriptor passes: it is neither a disk nor a network.
    #[inline(always)]
    pub fn transfer(fd: i32, _: usize) -> bool {
        let Some(file) = files::near(fd) else { return false };
        let is_limited = file.is_socket() && engine::minds_traffic();
        let is_other = file.is_other() && !is_limited && !trace::is_on();
        is_other && !faults::any() && local().passes_other()
    }

    /// Returns true if a write passes; also if it hits pages that are dirty already, or comes from
    /// a thread that deletes its own output, to a file of which nothing is known.
    #[inline(always)]
    pub fn write(fd: i32, count: usize) -> bool {
        let Some(file) = files::near(fd) else { return false };
        if file.rewrites_unpredicted() {
            return !trace::is_on() && local().thread.writes.count_rewritten(count).is_none();
        }
        if file.is_blank() {
            return is_held_on_disk_alone() && runs_ahead(count);
        }
        transfer(fd, count)
    }

    /// Returns true if a call that reads a directory passes.
    #[inline(always)]
    pub fn metadata() -> bool {
        is_held_on_disk_alone() && passes_untimed()
    }

    /// Returns true if a call that returns a directory entry passes: reads by daemons are not
    /// tracked.
    #[inline(always)]
    pub fn list() -> bool {
        !engine::class().is_some_and(|class| class.estimation().follows_daemons()) && metadata()
    }

    /// Returns true if a call on names or inodes passes.
    #[inline(always)]
    pub fn operation() -> bool {
        is_held_on_disk_alone() && passes_named_untimed()
    }

    /// Returns true if a call that unlinks files passes: dirty pages are not tracked.
    /// [`super::unheld`] has noted that it unlinks some.
    #[inline(always)]
    pub fn delete() -> bool {
        super::forgets() && operation()
    }

    /// Returns true if a call of open(2) with these flags passes.
    #[inline(always)]
    pub fn open(flags: i32) -> bool {
        flags & libc::O_TRUNC == 0 && !super::protects_cache() && operation()
    }

    /// Returns true if a call that moves a descriptor's offset passes: the offset is not tracked.
    #[inline(always)]
    pub fn seek(fd: i32) -> bool {
        files::near(fd).is_some_and(|file| !file.is_predicted())
    }

    /// Returns true if a call that closes a descriptor passes: nothing is known about the
    /// descriptor.
    #[inline(always)]
    pub fn close(fd: i32) -> bool {
        files::near(fd).is_some_and(File::is_blank) && metadata()
    }

    /// The commands that are left always go the long way.
    #[inline(always)]
    pub fn control(_: i32) -> bool {
        false
    }
}
