//! The block, field by field.
//!
//! Every field is of fixed width and atomic, so that the block means the same to every program
//! that maps it; a change of the layout changes [`VERSION`], and a library never touches a block
//! of another version. One file for each part:
//! - `header`: name, counters, settings;
//! - `thresholds`: a meter for each resource;
//! - `held`: which thresholds hold now;
//! - `media` and `places`: what the class moves on which medium;
//! - `fleet`: what many machines share;
//! - `disk_total`: what the class may move in all;
//! - `advice`: what the user's own policy says;
//! - `unmet`: conditions that its jobs wait for;
//! - `membership`: the slots of processes, and what is known of them from outside;
//! - `estimation`: the estimator's part;
//! - `seen`: the files that were opened lately;
//! - `trace`: the last calls of the members.
//!
//! # Safety
//! [`Class::adopt`] turns raw memory into a `&Class`. That is sound for any content: every field
//! is an atomic integer, for which every bit pattern is valid.
#![allow(unsafe_code, reason = "one cast from raw memory, argued at `Class::adopt`")]

mod advice;
mod disk_total;
mod estimation;
mod fleet;
mod foreign;
mod header;
mod held;
mod least;
mod media;
mod membership;
mod places;
#[cfg(test)]
mod tests;
mod thresholds;
mod unmet;

use core::ptr::NonNull;

use discnice_estimator::Estimation;
use disk_total::DiskTotal;

use crate::policy::{Pace, Resource};
pub use foreign::Foreign;
use header::Header;
use least::Least;
use places::Places;
pub use thresholds::Direction;
use unmet::Unmet;

use crate::advice::Advice;
use crate::fleet::Fleet;
use crate::member::Member;
use crate::meter::Meter;
use crate::occupied_slots::Occupied;
use crate::outside::{Held, Watcher};
use crate::passed::Passed;
use crate::path_shares::PathShares;
use crate::primitive::Ordering;
use crate::reopened_files::Seen;
use crate::trace::{self, Trace};
use crate::uplink::Uplink;
use crate::waits::Waits;

/// "DiscNice" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"DiscNice");
/// Version of the layout.
pub const VERSION: u32 = 21;
/// Processes that one class can name; more are regulated but not listed.
pub const MEMBERS: usize = 16_384;
/// Longest name of a class, in bytes.
pub const NAME_MAX: usize = 255;

//= rate-windows/7-user-level
/// A class: thresholds, charges and members.
///
/// The fields that a watcher of a thousand idle classes reads lie together at the beginning, as
/// each page that is touched is allocated.
#[derive(Debug)]
#[repr(C)]
pub struct Class {
    header: Header,
    watcher: Watcher,
    occupied: Occupied<{ MEMBERS / 64 }>,
    /// One for each [`Resource`], at the place of its number.
    meters: [Meter; Resource::COUNT],
    waits: Waits,
    fleet: Fleet,
    disk_total: DiskTotal,
    advice: Advice,
    unmet: Unmet,
    least: Least,
    uplink: Uplink,
    path_shares: PathShares,
    places: Places,
    passed: Passed,
    members: [Member; MEMBERS],
    /// What a watcher outside knows of the members, slot by slot.
    held: [Held; MEMBERS],
    estimation: Estimation,
    seen: Seen,
    trace: Trace,
}

impl Class {
    /// Bytes of the block.
    pub const SIZE: usize = size_of::<Self>();

    /// Looks at `length` bytes of shared memory as a class, and accepts it if it is ours.
    ///
    /// # Errors
    /// Why it is not.
    ///
    /// # Safety
    /// `start` points to `length` readable and writable bytes, aligned to a page, which stay
    /// mapped as long as the reference lives.
    pub unsafe fn adopt<'a>(
        start: NonNull<u8>,
        length: usize,
        nonce: Option<u64>,
    ) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: long enough, aligned, mapped (the caller), and every bit pattern is valid.
        let class: &Self = unsafe { start.cast().as_ref() };
        let header = &class.header;
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(Foreign::NotAClass);
        }
        match header.version.load(Ordering::Relaxed) {
            VERSION => {}
            other => return Err(Foreign::OtherVersion(other)),
        }
        match nonce {
            Some(nonce) if nonce != class.nonce() => Err(Foreign::OtherClass),
            _ => Ok(class),
        }
    }

    /// Makes a class of fresh zeroed shared memory.
    ///
    /// # Errors
    /// The memory is too short.
    ///
    /// # Safety
    /// As [`Class::adopt`], and the memory is not yet in use.
    pub unsafe fn create<'a>(
        start: NonNull<u8>,
        length: usize,
        nonce: u64,
        name: &[u8],
        created: u64,
    ) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: as in `adopt`.
        let class: &Self = unsafe { start.cast().as_ref() };
        let header = &class.header;
        header.nonce.store(nonce, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.created.store(created, Ordering::Relaxed);
        header.pace.store(Pace::DEFAULT.to_word(), Ordering::Relaxed);
        for (word, chunk) in header.name.iter().zip(name.chunks(8)) {
            let mut eight = [0; 8];
            eight.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        class.lift_all();
        // Stored last: a process that sees the magic sees a whole class.
        header.magic.store(MAGIC, Ordering::Release);
        Ok(class)
    }
}

const _: () = {
    assert!(core::mem::offset_of!(Class, watcher) == 448);
    assert!(core::mem::offset_of!(Class, occupied) == 448 + 128);
    assert!(core::mem::offset_of!(Class, meters) == 448 + 128 + MEMBERS / 8);
    assert!(size_of::<Meter>() == 832);
    assert!(size_of::<Member>() == 64);
    assert!(size_of::<Waits>() == 768);
    assert!(size_of::<Fleet>() == 64);
    assert!(size_of::<DiskTotal>() == 64);
    assert!(size_of::<Advice>() == 128);
    assert!(size_of::<Unmet>() == 64);
    assert!(size_of::<Least>() == 64);
    assert!(size_of::<Uplink>() == 64);
    assert!(size_of::<PathShares>() == 576);
    assert!(size_of::<Places>() == 128);
    assert!(size_of::<Passed>() == 640);
    assert!(
        core::mem::offset_of!(Class, members)
            == core::mem::offset_of!(Class, meters)
                + Resource::COUNT * 832
                + 768
                + 64
                + 64
                + 128
                + 64
                + 64
                + 64
                + 576
                + 128
                + 640
    );
    assert!(size_of::<Held>() == 64);
    assert!(
        core::mem::offset_of!(Class, estimation)
            == core::mem::offset_of!(Class, members) + MEMBERS * (64 + 64)
    );
    assert!(size_of::<Estimation>().is_multiple_of(64));
    assert!(
        core::mem::offset_of!(Class, seen)
            == core::mem::offset_of!(Class, estimation) + size_of::<Estimation>()
    );
    assert!(
        core::mem::offset_of!(Class, trace) == core::mem::offset_of!(Class, seen) + 64 + 16_384
    );
    assert!(
        Class::SIZE
            == core::mem::offset_of!(Class, trace)
                + (16 + trace::RECORDS * 96).next_multiple_of(64)
    );
};
