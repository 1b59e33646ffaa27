//! The calls that are neither held nor timed: those of which the fast form of the decision knows
//! that they go on ([`discnice_regulator::decision::fast`]), unless a look at the account is due.
//!
//! They are counted before they are made, by what they ask for, so that nothing is left to do after
//! them: libc's function is jumped to. A call that these functions decline takes the long way
//! (`calls`); so does every one that is due for a look at the account.
//!
//! Each hook asks [`unheld`] first, and then, in another function, [`held`]: what the first
//! question needs lies in few cache lines, which the kernel has often driven out since the last
//! call. A hook that has more to do than to make its call is not asked here, or only where nothing
//! of that is to be done: the functions named after it say when.

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
    use discnice_ledger::trace::Why;
    use discnice_regulator::decision::fast::unlimited;

    use crate::files;
    use crate::known::{Anything, Numbered};
    use crate::thread::local;

    /// Lets a call pass that moves at most `count` bytes through a descriptor.
    #[inline(always)]
    pub fn transfer(fd: i32, count: usize) -> bool {
        let thread = &local().thread;
        let passes = unlimited::transfer(&Numbered(fd)).is_some()
            && thread.countdown.count_unlimited(count).is_none();
        if passes {
            thread.tally.count(Why::Unlimited, count as u64);
        }
        passes
    }

    /// Lets a write of at most `count` bytes pass.
    #[inline(always)]
    pub fn write(fd: i32, count: usize) -> bool {
        transfer(fd, count)
    }

    /// Lets a call pass that reads a directory.
    #[inline(always)]
    pub fn metadata() -> bool {
        let thread = &local().thread;
        let passes = unlimited::metadata(&Anything).is_some()
            && thread.countdown.count_unlimited(0).is_none();
        if passes {
            thread.tally.count_call(Why::Unlimited);
        }
        passes
    }

    /// Lets a call pass that returns a directory entry.
    #[inline(always)]
    pub fn list() -> bool {
        metadata()
    }

    /// Lets a call on names or inodes pass.
    #[inline(always)]
    pub fn operation() -> bool {
        let thread = &local().thread;
        let passes = unlimited::metadata(&Anything).is_some()
            && thread.names.count_unlimited().is_none()
            && thread.countdown.count_unlimited(0).is_none();
        if passes {
            thread.tally.count_call(Why::Unlimited);
        }
        passes
    }

    /// Notes a call that unlinks files, and lets it pass where dirty pages are not tracked.
    #[inline(always)]
    pub fn delete() -> bool {
        local().thread.deletions.note_removal();
        super::forgets() && operation()
    }

    /// Lets a call of open(2) with these flags pass.
    #[inline(always)]
    pub fn open(flags: i32) -> bool {
        flags & libc::O_TRUNC == 0 && !super::protects_cache() && operation()
    }

    /// Lets a call pass that moves a descriptor's offset: offsets are not tracked.
    #[inline(always)]
    pub fn seek(_: i32) -> bool {
        unlimited::metadata(&Anything).is_some()
    }

    /// Lets a call pass that closes a descriptor of which nothing is known.
    #[inline(always)]
    pub fn close(fd: i32) -> bool {
        files::near(fd).is_some_and(discnice_regulator::File::is_blank) && metadata()
    }

    /// Lets fcntl(2) pass, but for the commands that duplicate a descriptor or change how it
    /// writes.
    #[inline(always)]
    pub fn control(command: i32) -> bool {
        !matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETFL)
    }

    /// Lets ioctl(2) pass, but for the requests that share parts of files.
    #[inline(always)]
    pub fn request(request: u64) -> bool {
        !crate::calls::shares(request)
    }
}

/// Something may hold it, but not this call, and no trace runs.
pub mod held {
    use discnice_ledger::trace::Why;
    use discnice_regulator::decision::fast;
    use discnice_regulator::{File, Flow};

    use super::engine;
    use crate::files;
    use crate::known::{Named, Transfer};
    use crate::thread::{Local, local};

    /// Lets a call through a descriptor pass that is neither a disk nor a network.
    #[inline(always)]
    pub fn transfer(fd: i32, count: usize) -> bool {
        let local = local();
        Transfer::near(&local.thread, fd, Flow::Down, count)
            .is_some_and(|call| fast::held::transfer(&call).is_some())
            && passes_other(local, count)
    }

    /// Counts a call on a descriptor that cannot reach a disk, if it may pass.
    #[inline(always)]
    fn passes_other(local: &Local, count: usize) -> bool {
        let passes = local.count_other().is_none();
        if passes {
            local.thread.tally.count(Why::Elsewhere, count as u64);
        }
        passes
    }

    /// Lets a write pass; also if it hits pages that are dirty already, or comes from a thread that
    /// deletes its own output, to a file of which nothing is known.
    #[inline(always)]
    pub fn write(fd: i32, count: usize) -> bool {
        let local = local();
        let thread = &local.thread;
        let Some(call) = Transfer::near(thread, fd, Flow::Up, count) else { return false };
        let why = match fast::held::write(&call) {
            Some(Why::Dirty) if thread.writes.count_rewritten(count).is_none() => Why::Dirty,
            Some(Why::Deletes) => {
                thread.deletions.deduct(count);
                Why::Deletes
            }
            Some(Why::Elsewhere) => return passes_other(local, count),
            _ => return false,
        };
        thread.tally.count(why, count as u64);
        true
    }

    /// Lets a call pass that reads a directory.
    #[inline(always)]
    pub fn metadata() -> bool {
        let thread = &local().thread;
        let passes =
            fast::held::metadata(&Named { thread }).is_some() && thread.countdown.allows_untimed();
        if passes {
            thread.countdown.count_untimed();
            thread.tally.count_call(Why::Cached);
        }
        passes
    }

    /// Lets a call pass that returns a directory entry: reads by daemons are not tracked.
    #[inline(always)]
    pub fn list() -> bool {
        !engine::class().is_some_and(|class| class.estimation().follows_daemons()) && metadata()
    }

    /// Lets a call on names or inodes pass.
    #[inline(always)]
    pub fn operation() -> bool {
        let thread = &local().thread;
        let passes = fast::held::metadata(&Named { thread }).is_some()
            && thread.countdown.allows_untimed()
            && thread.names.count_limited().is_none();
        if passes {
            thread.countdown.count_untimed();
            thread.tally.count_call(Why::Cached);
        }
        passes
    }

    /// Lets a call pass that unlinks files, where dirty pages are not tracked. [`super::unheld`] has
    /// noted that it unlinks some.
    #[inline(always)]
    pub fn delete() -> bool {
        super::forgets() && operation()
    }

    /// Lets a call of open(2) with these flags pass.
    #[inline(always)]
    pub fn open(flags: i32) -> bool {
        flags & libc::O_TRUNC == 0 && !super::protects_cache() && operation()
    }

    /// Lets a call pass that moves a descriptor's offset, if the offset is not tracked.
    #[inline(always)]
    pub fn seek(fd: i32) -> bool {
        files::near(fd).is_some_and(|file| !file.is_predicted())
    }

    /// Lets a call pass that closes a descriptor of which nothing is known.
    #[inline(always)]
    pub fn close(fd: i32) -> bool {
        files::near(fd).is_some_and(File::is_blank) && metadata()
    }

    /// The commands that are left always go the long way.
    #[inline(always)]
    pub fn control(_: i32) -> bool {
        false
    }

    /// The requests that are left always go the long way.
    #[inline(always)]
    pub fn request(_: u64) -> bool {
        false
    }
}
