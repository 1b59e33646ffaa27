//! The calls that nothing holds and nobody waits for: in a class without any threshold, on what is
//! neither a disk nor a network, and most of those on names and directories while all is cached.
//!
//! They are counted before they are made, by what they ask for, so that nothing is left to do after
//! them: libc's function is jumped to. A call of which these questions say no goes the long way
//! (`calls`); so does every one that is due for a look at the account.

use discnice_budget::Class;
use discnice_regulator::File;

use crate::thread::local;
use crate::{engine, faults, files};

/// How this process is held.
enum Held {
    /// Not at all.
    Not,
    /// By thresholds of disk traffic alone, and no page faults are waited for.
    OnDisk,
    /// In another way, or it is not known.
    Otherwise,
}

#[inline(always)]
fn held() -> Held {
    match engine::class() {
        Some(class) if class.is_unheld() => Held::Not,
        Some(class) if class.is_held_on_disk_alone() && !faults::any() => Held::OnDisk,
        _ => Held::Otherwise,
    }
}

/// Whether a call that moves at most `count` bytes through a descriptor passes.
#[inline(always)]
pub fn transfer(fd: i32, count: usize) -> bool {
    let Some(file) = files::near(fd) else { return false };
    if file.is_other() {
        let held = file.is_socket() && engine::limits_traffic();
        return !held && local().passes_other();
    }
    file.is_untouched()
        && engine::class().is_some_and(Class::is_unheld)
        && local().thread.passes(count)
}

/// Whether a call that reads a directory passes.
#[inline(always)]
pub fn metadata() -> bool {
    match held() {
        Held::Not => local().thread.passes(0),
        Held::OnDisk => local().thread.passes_untimed(),
        Held::Otherwise => false,
    }
}

/// Whether a call on names or inodes passes.
#[inline(always)]
pub fn operation() -> bool {
    match held() {
        Held::Not => local().thread.passes_named(),
        Held::OnDisk => local().thread.passes_named_untimed(),
        Held::Otherwise => false,
    }
}

/// Whether a call of open(2) with these flags passes.
#[inline(always)]
pub fn open(flags: i32) -> bool {
    flags & libc::O_TRUNC == 0 && operation()
}

/// Whether a call that moves a descriptor's offset passes: nobody follows it.
#[inline(always)]
pub fn seek(fd: i32) -> bool {
    files::near(fd).is_some_and(|file| !file.is_predicted())
}

/// Whether a call that closes a descriptor passes: nothing is known about it.
#[inline(always)]
pub fn close(fd: i32) -> bool {
    files::near(fd).is_some_and(File::is_blank) && metadata()
}
