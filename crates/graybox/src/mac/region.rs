//! Anonymous memory that is touched page by page under the timer.
#![allow(unsafe_code, reason = "mmap, madvise and writing to the mapped pages")]

use std::io;
use std::ptr::{self, NonNull};

use crate::toolbox::Timer;

/// Pages that [`Region::populate`] has brought in one go.
const BLOCK: usize = 16;

/// Address space of our own; pages come when they are touched.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    length: usize,
    page: usize,
}

// SAFETY: the region owns its mapping, which any thread may use.
unsafe impl Send for Region {}
// SAFETY: without `&mut` nothing but the address can be had; what is done with that is up to the
// unsafe code that does it.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves `length` bytes, above 0.
    ///
    /// # Errors
    /// `ENOMEM` above RLIMIT_AS or the address space.
    pub fn reserve(length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing of ours.
        let map = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, -1, 0) };
        match NonNull::new(map.cast()).filter(|_| map != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length, page: rustix::param::page_size() }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Fills the region, each eight bytes with what `next` says.
    pub fn fill(&mut self, mut next: impl FnMut() -> u64) {
        for at in (0..self.length / 8 * 8).step_by(8) {
            // SAFETY: `at + 8` is at most the length of the mapping, which is ours and writable,
            // starts on a page and hence keeps the word aligned.
            unsafe { self.start.as_ptr().add(at).cast::<u64>().write_volatile(next()) };
        }
    }

    /// Asks the kernel to move the pages to swap, as far as there is some (Linux 5.4).
    pub fn page_out(&mut self) {
        // SAFETY: our own mapping; where its pages are changes nothing about their contents.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.length, libc::MADV_PAGEOUT) };
    }

    /// All of it; untouched pages come as zeros.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `length` bytes from `start` on are our own mapping, readable, writable and
        // always initialised; the borrow of `self` keeps it in place and others out.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// First byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes of address space.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Writes one byte in each page of `from .. to` that starts in it, and calls `each` with the
    /// nanoseconds that the page took, until it returns false. Returns the end of what was
    /// touched. A touched page keeps its contents.
    pub fn touch(&mut self, from: usize, to: usize, each: impl FnMut(u64) -> bool) -> usize {
        self.touch_some(from, to, 1, each)
    }

    /// Touches like [`Self::touch`], but only the first of each `stride` pages.
    pub fn touch_some(
        &mut self,
        from: usize,
        to: usize,
        stride: usize,
        mut each: impl FnMut(u64) -> bool,
    ) -> usize {
        let end = to.min(self.length);
        let mut at = from;
        let mut last = Timer::start();
        while at < end {
            // SAFETY: `at` is below the length of the mapping, which is ours, readable and
            // writable; volatile, as the compiler must not leave the write of the same byte out.
            unsafe {
                let byte = self.start.as_ptr().add(at);
                byte.write_volatile(byte.read_volatile());
            }
            let now = Timer::start();
            let nanos = last.until(now).0;
            last = now;
            at += self.page * stride;
            if !each(nanos) {
                break;
            }
        }
        at.min(end)
    }

    /// Touches pages that have not been touched yet like [`Region::touch`], a block of [`BLOCK`] at
    /// a time, which takes a third less: `each` is told the mean time of a page.
    pub fn populate(&mut self, from: usize, to: usize, mut each: impl FnMut(u64) -> bool) -> usize {
        let end = to.min(self.length).next_multiple_of(self.page).min(self.length);
        let mut at = from;
        while at < end {
            let length = (BLOCK * self.page).min(end - at);
            let timer = Timer::start();
            // SAFETY: a part of our own mapping; the pages come as zeros, as by touching them.
            let done = unsafe {
                let start = self.start.as_ptr().add(at);
                libc::madvise(start.cast(), length, libc::MADV_POPULATE_WRITE)
            };
            if done != 0 {
                // A kernel before 5.14, or a signal in between.
                return self.touch(at, to, each);
            }
            at += length;
            if !each(timer.elapsed().0 / length.div_ceil(self.page) as u64) {
                break;
            }
        }
        at.min(end)
    }

    /// Gives the pages of `from .. end` back and the address space after `from` too.
    pub fn shrink(&mut self, from: usize) {
        let from = from.next_multiple_of(self.page);
        if from >= self.length {
            return;
        }
        // SAFETY: `from` lies inside our mapping; what is behind it is not in use, as the length
        // handed out is at most `from`.
        unsafe { libc::munmap(self.start.as_ptr().add(from).cast(), self.length - from) };
        self.length = from;
    }

    /// Gives the pages of `from .. end` back, keeps the address space.
    pub fn release(&mut self, from: usize) {
        if from < self.length {
            // SAFETY: a part of our own mapping with contents that nothing depends on.
            unsafe {
                let start = self.start.as_ptr().add(from);
                libc::madvise(start.cast(), self.length - from, libc::MADV_DONTNEED);
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping that `reserve` made, of which no reference is left.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}
