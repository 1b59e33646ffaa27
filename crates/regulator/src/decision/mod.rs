//! What happens to a call: the one place where that is decided, inside a program and outside.
//!
//! A decision asks [`Conditions`] and changes nothing. Its order of questions is the order in which
//! they are cheap. What follows from it is done elsewhere: a call that goes on is counted
//! ([`crate::Thread`]), one that waits is admitted ([`crate::Regulator`]).
//!
//! | kind | goes on, if | because |
//! |---|---|---|
//! | read, write | nothing holds the class, and nothing on the descriptor must be undone | [`Why::Unlimited`] |
//! | read, write | it cannot reach a disk, nor a network that is limited | [`Why::Elsewhere`] |
//! | read | what it reads is known, or after the last reads expected, to be cached | [`Why::Cached`] |
//! | write | the pages that it writes are known, or after the last writes expected, to be dirty | [`Why::Dirty`] |
//! | write | its thread deletes what it writes | [`Why::Deletes`] |
//! | name, directory | no disk is limited | [`Why::Unlimited`] |
//! | name, directory | the last look found everything cached | [`Why::Cached`] |
//! | start of I/O | no disk is limited | [`Why::Unlimited`] |
//!
//! All others wait for their turn, as a whole or in pieces, or are refused for the moment if they
//! must not wait. [`fast`] decides a part of these by fewer questions, for hooks that then jump to
//! libc's function; a test compares both for all combinations of conditions.

pub mod fast;
#[cfg(test)]
mod tests;

use discnice_ledger::trace::Why;

use crate::Turn;

/// A longer read, in bytes, is worth a look at what it is about to read.
pub const SHORT: u64 = 128 << 10;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It goes on at once, for this reason, and is counted.
    Proceed(Why),
    /// It is admitted first, as a whole: that may take long, and says why it goes on then.
    Wait,
    /// It is admitted and made in pieces of at most so many bytes.
    Split(u64),
    /// It is refused for the moment, as the program asked not to wait and will hear when to come again.
    WouldBlock,
}

/// What a decision may ask about a call. Each answer is a claim that may be wrong a moment later, and
/// none changes anything.
///
/// The default answers are those of something about which nothing is known; each implementation
/// overrides what it knows of.
pub trait Conditions {
    /// No threshold of any resource is in force, and nothing is traced or observed.
    fn is_unlimited(&self) -> bool {
        false
    }
    /// No threshold of disk traffic is in force, and the class does not give way.
    fn is_free(&self) -> bool {
        false
    }
    /// A threshold of disk traffic is in force, or everything is predicted.
    fn is_limited(&self) -> bool {
        true
    }
    /// Only thresholds of disk traffic are in force, at least one, and nothing is predicted.
    fn is_held_on_disk_alone(&self) -> bool {
        false
    }
    /// The class owes nothing on disks.
    fn is_calm(&self) -> bool {
        false
    }
    /// The class predicts every call.
    fn predicts(&self) -> bool {
        false
    }
    /// Metadata operations are limited.
    fn limits_names(&self) -> bool {
        false
    }
    /// Network traffic must be looked at.
    fn minds_traffic(&self) -> bool {
        false
    }
    /// Calls are recorded.
    fn is_traced(&self) -> bool {
        false
    }
    /// Page faults have read what is not paid for.
    fn owes_for_faults(&self) -> bool {
        false
    }
    /// Nothing is known about the descriptor.
    fn is_blank(&self) -> bool {
        false
    }
    /// The descriptor cannot reach a disk.
    fn is_other(&self) -> bool {
        false
    }
    /// The descriptor is a socket.
    fn is_socket(&self) -> bool {
        false
    }
    /// Nothing on the descriptor must be undone when no limit is in force any more.
    fn is_untouched(&self) -> bool {
        false
    }
    /// No descriptor of this number was ever changed, which is known without looking at it.
    fn was_never_shaped(&self) -> bool {
        false
    }
    /// Every call on the file is predicted.
    fn is_predicted(&self) -> bool {
        false
    }
    /// Nothing but timing is needed as long as reads hit the cache: nothing is read ahead for it.
    fn is_plain(&self) -> bool {
        true
    }
    /// What is asked for is known to be cached, or for a write to be dirty.
    fn is_known(&self) -> bool {
        false
    }
    /// What is cached of the file can only be probed, and need not be if the last probes found all.
    fn passes_unprobed(&self) -> bool {
        false
    }
    /// The last write hit pages that were dirty already.
    fn rewrites(&self) -> bool {
        false
    }
    /// The call is not worth a look at what it is about to read.
    fn is_short(&self) -> bool {
        true
    }
    /// The thread is likely to read the disk.
    fn missed(&self) -> bool {
        true
    }
    /// The last probes found all that was asked for.
    fn finds_all(&self) -> bool {
        false
    }
    /// What the thread deleted covers the call.
    fn deletions_cover(&self) -> bool {
        false
    }
}

/// What is decided of a call through a descriptor before anything of a disk is asked.
#[inline(always)]
fn on_descriptor(call: &impl Conditions) -> Option<Decision> {
    let is_other = call.is_other();
    let is_free = if is_other { call.is_unlimited() } else { call.is_free() };
    if is_free && call.is_untouched() {
        return Some(Decision::Proceed(Why::Unlimited));
    }
    if !is_other {
        return None;
    }
    let is_regulated = call.is_socket() && call.minds_traffic();
    Some(if is_regulated { Decision::Wait } else { Decision::Proceed(Why::Elsewhere) })
}

/// Decides about a call that reads from a descriptor.
#[inline(always)]
#[must_use]
pub fn read(call: &impl Conditions) -> Decision {
    if let Some(decision) = on_descriptor(call) {
        return decision;
    }
    let is_cached = if call.is_predicted() || call.predicts() {
        call.is_known() || call.is_short() && call.finds_all() && call.passes_unprobed()
    } else {
        call.is_short() && !call.missed() && call.is_plain() && call.is_calm()
    };
    if is_cached { Decision::Proceed(Why::Cached) } else { Decision::Wait }
}

/// Decides about a call that writes to a descriptor.
#[inline(always)]
#[must_use]
pub fn write(call: &impl Conditions) -> Decision {
    if let Some(decision) = on_descriptor(call) {
        return decision;
    }
    if call.is_predicted() && call.is_known() || !call.is_predicted() && call.rewrites() {
        return Decision::Proceed(Why::Dirty);
    }
    let is_unpredicted = !call.predicts() && !call.is_predicted();
    if is_unpredicted && call.is_limited() && call.deletions_cover() {
        return Decision::Proceed(Why::Deletes);
    }
    Decision::Wait
}

/// Decides about a call that reads a directory or inodes.
#[inline(always)]
#[must_use]
pub fn metadata(call: &impl Conditions) -> Decision {
    if call.is_free() {
        return Decision::Proceed(Why::Unlimited);
    }
    if call.missed() { Decision::Wait } else { Decision::Proceed(Why::Cached) }
}

/// Decides about a metadata operation: a call on names or inodes.
#[inline(always)]
#[must_use]
pub fn operation(call: &impl Conditions) -> Decision {
    if call.limits_names() { Decision::Wait } else { metadata(call) }
}

/// Decides about a call that starts I/O of unknown size.
#[inline(always)]
#[must_use]
pub fn start(call: &impl Conditions) -> Decision {
    if call.is_limited() { Decision::Wait } else { Decision::Proceed(Why::Unlimited) }
}

/// Decides whether a call that waits is made in pieces of `piece` bytes. Whether it may be cut is
/// asked only where that matters.
#[inline(always)]
#[must_use]
pub fn pieces(count: u64, piece: u64, may_be_cut: impl FnOnce() -> bool) -> Decision {
    if count > piece && may_be_cut() { Decision::Split(piece) } else { Decision::Wait }
}

/// Decides about a call on a socket that has asked for its turn. One that must not wait is refused
/// only where something tells the program when to come again.
#[must_use]
pub fn turn(turn: Turn, must_not_wait: bool, can_come_again: impl FnOnce() -> bool) -> Decision {
    match turn {
        Turn::Now => Decision::Proceed(Why::Turn),
        _ if must_not_wait && can_come_again() => Decision::WouldBlock,
        _ => Decision::Wait,
    }
}
