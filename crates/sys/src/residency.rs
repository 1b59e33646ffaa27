//! Which pages of a file the page cache holds, by three means that differ in reliability.

use crate::file::read_small_at;
use crate::memory::PAGE;
use crate::process;
use crate::raw::{Errno, call};

/// Map pages into memory, reading those that are not cached. madvise(2), Linux 5.14.
const MADV_POPULATE_READ: i32 = 22;

/// Bytes around a faulting address in which cached pages are mapped with it: mm/memory.c,
/// `fault_around_bytes`. On a kernel with a smaller one fewer pages are seen, never more.
pub const FAULT_AROUND: u64 = 64 << 10;
/// Bytes that [`touch`] maps at once.
pub const TOUCH_MAX: u64 = 1 << 20;

/// A mapping of ours, gone with the value.
pub(crate) struct Mapping {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl Mapping {
    /// Maps whole pages of a file. With `protection` none, no thread can fault on it.
    pub(crate) fn of(fd: i32, offset: u64, length: u64, protection: i32) -> Result<Self, Errno> {
        let length = usize::try_from(length).map_err(|_| Errno(libc::EOVERFLOW))?;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing uses.
        let start = unsafe { call!(libc::SYS_mmap, 0, length, protection, flags, fd, offset)? };
        Ok(Self { start, length })
    }

    /// Maps the [`FAULT_AROUND`] bytes from `offset` on, a page's, so that a fault on any of them
    /// is mapped around among all of them; also returns where in the mapping they begin.
    fn window(fd: i32, offset: u64) -> Result<(Self, usize), Errno> {
        let length = FAULT_AROUND as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let (none, nowhere) = (libc::PROT_NONE, usize::MAX);
        // SAFETY: as in `of`; the addresses are only reserved.
        let start = unsafe { call!(libc::SYS_mmap, 0, 2 * length, none, flags, nowhere, 0)? };
        let space = Self { start, length: 2 * length };
        let start = space.start.next_multiple_of(length);
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces half of the addresses reserved above, which are not in use.
        unsafe { call!(libc::SYS_mmap, start, length, libc::PROT_READ, flags, fd, offset)? };
        let from = start - space.start;
        Ok((space, from))
    }

    pub(crate) fn advise(&self, from: usize, length: usize, advice: i32) -> Result<(), Errno> {
        // SAFETY: a part of our own mapping, which is neither read nor written.
        unsafe { call!(libc::SYS_madvise, self.start + from, length, advice) }.map(drop)
    }

    /// Touches a page; returns whether it had to be read.
    fn reads(&self, from: usize) -> Result<bool, Errno> {
        let before = process::major_faults();
        self.advise(from, PAGE, MADV_POPULATE_READ)?;
        Ok(process::major_faults() != before)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `of` or `window`, and no reference into it was ever made.
        let _ = unsafe { call!(libc::SYS_munmap, self.start, self.length) };
    }
}

/// Returns the cached pages of a range. mincore(2): without write access to the file, it reports
/// all pages as cached.
///
/// # Errors
/// `ENODEV` where a file cannot be mapped.
pub fn resident(fd: i32, offset: u64, length: u64) -> Result<u64, Errno> {
    let first = offset / PAGE as u64 * PAGE as u64;
    let length = (offset - first).saturating_add(length).next_multiple_of(PAGE as u64);
    let mapping = Mapping::of(fd, first, length, libc::PROT_NONE)?;
    mapped(mapping.start, mapping.length)
}

/// Pages in the cache of the file that is mapped at `start`, a page's. mincore(2)
///
/// # Errors
/// `ENOMEM` where nothing is mapped.
pub fn mapped(start: usize, length: usize) -> Result<u64, Errno> {
    let mut cached = 0;
    each_mapped(start, length, |resident| cached += u64::from(resident))?;
    Ok(cached)
}

/// Says of each page of what is mapped at `start`, a page's, whether it is resident:
/// `int mincore(void *, size_t, unsigned char *)`.
///
/// # Errors
/// As [`mapped`].
pub(crate) fn each_mapped(
    start: usize,
    length: usize,
    mut each: impl FnMut(bool),
) -> Result<(), Errno> {
    let length = length.checked_next_multiple_of(PAGE).ok_or(Errno(libc::EOVERFLOW))?;
    let mut done = 0;
    while done < length {
        let mut pages = [0u8; 512];
        let piece = (length - done).min(pages.len() * PAGE);
        // SAFETY: the kernel writes one byte for each page asked about, at most 512.
        unsafe { call!(libc::SYS_mincore, start + done, piece, pages.as_mut_ptr())? };
        pages.iter().take(piece / PAGE).for_each(|page| each(page & 1 == 1));
        done += piece;
    }
    Ok(())
}

/// What [`touch`] found, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Touched {
    /// Were in the cache.
    pub cached: u64,
    /// Were not, and were read by being touched.
    pub read: u64,
}

/// Looks at a range as an ordinary reader may look at any file: touches one page in each
/// [`FAULT_AROUND`] bytes, whereupon the kernel maps those pages around it that are cached, and
/// reads from the process's page map which ones these are. Stops at the first touched page that
/// had to be read (a major fault), and takes the rest not to be cached. At most [`TOUCH_MAX`] bytes
/// are looked at; those behind are taken not to be cached.
///
/// # Errors
/// As mmap(2); `EINVAL` on a kernel that cannot populate; whatever hides /proc from us.
pub fn touch(fd: i32, offset: u64, length: u64) -> Result<Touched, Errno> {
    // Faults are mapped around within aligned windows of addresses; the mapping's start is not
    // aligned to them, so each window of the file gets a touch of its own pages.
    let first = offset / PAGE as u64 * PAGE as u64;
    let length = (offset - first).saturating_add(length).next_multiple_of(PAGE as u64);
    let mapping = Mapping::of(fd, first, length.min(TOUCH_MAX), libc::PROT_READ)?;
    mapping.advise(0, mapping.length, libc::MADV_RANDOM)?;
    let (mut at, mut read) = (0, false);
    while at < mapping.length && !read {
        read = mapping.reads(at)?;
        let window = (mapping.start + at) & !(FAULT_AROUND as usize - 1);
        at = (window + FAULT_AROUND as usize - mapping.start).min(mapping.length);
    }
    let mut words = [0u64; TOUCH_MAX as usize / PAGE];
    let Some(words) = words.get_mut(..at / PAGE) else { return Err(Errno(libc::EOVERFLOW)) };
    let place = (mapping.start / PAGE * size_of::<u64>()) as u64;
    read_small_at(c"/proc/self/pagemap", words, place)?;
    let mut cached = words.iter().filter(|word| is_present(**word)).count() as u64;
    if read {
        return Ok(Touched { cached: cached.saturating_sub(1), read: 1 });
    }
    // The page that would start the kernel's read-ahead is left out when pages are mapped around
    // a fault, so those that are missing are touched too, up to the first that really is.
    for (page, _) in words.iter().enumerate().filter(|(_, word)| !is_present(**word)) {
        if mapping.reads(page * PAGE)? {
            return Ok(Touched { cached, read: 1 });
        }
        cached += 1;
    }
    Ok(Touched { cached, read: 0 })
}

/// What a fault on one page of a window of [`FAULT_AROUND`] bytes showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// First byte of the window.
    pub start: u64,
    /// The page touched had to be read.
    pub read: bool,
    /// A bit for each page of the window, the first in the least: it was in the cache. The kernel
    /// leaves out, beside what is not there, the page that would start its read-ahead.
    pub cached: u16,
}

/// Looks at a window of a file as an ordinary reader may look at any file: touches the page with
/// the byte at `offset`, whereupon the kernel maps those pages of the window that are cached, as
/// [`touch`] does. The window starts at `start`, a page's, at most [`FAULT_AROUND`] before `offset`.
/// No read-ahead, and the pages do not look used to the kernel.
///
/// # Errors
/// As [`touch`]; `EFAULT` beyond the end of the file.
pub fn look(fd: i32, start: u64, offset: u64) -> Result<Seen, Errno> {
    let mut words = [0u64; FAULT_AROUND as usize / PAGE];
    let touched = (offset.saturating_sub(start) as usize / PAGE).min(words.len() - 1);
    let (mapping, from) = Mapping::window(fd, start)?;
    mapping.advise(from, FAULT_AROUND as usize, libc::MADV_RANDOM)?;
    let read = mapping.reads(from + touched * PAGE)?;
    let place = ((mapping.start + from) / PAGE * size_of::<u64>()) as u64;
    read_small_at(c"/proc/self/pagemap", &mut words, place)?;
    let bits = words.iter().rev().fold(0, |bits, word| bits << 1 | u16::from(is_present(*word)));
    let cached = if read { bits & !(1 << touched) } else { bits | 1 << touched };
    Ok(Seen { start, read, cached })
}

/// Returns true if a page is mapped, by its word in proc_pid_pagemap(5): bit 63, which needs no
/// privilege.
pub(crate) const fn is_present(word: u64) -> bool {
    word >> 63 == 1
}
