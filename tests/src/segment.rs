//! A class's shared memory, to do harm to it.

#![allow(unsafe_code, reason = "System V shared memory has no safe interface")]

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// In the head, which is so many words long, the class's name stands behind zeroes or numbers; a
/// test need not know where.
const HEAD: usize = 128;

/// A mapped segment; unmapped when dropped.
#[derive(Debug)]
pub struct Segment {
    id: i32,
    start: *const AtomicU64,
    words: usize,
}

impl Segment {
    /// The segment of the class of this name, if there is one.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let list = fs::read_to_string("/proc/sysvipc/shm").ok()?;
        list.lines().skip(1).find_map(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let id = columns.next()?.parse().ok()?;
            let size: usize = columns.nth(1)?.parse().ok()?;
            let segment = Self::attach(id, size)?;
            segment.is_named(name).then_some(segment)
        })
    }

    fn attach(id: i32, size: usize) -> Option<Self> {
        if size < HEAD * 8 {
            return None;
        }
        // SAFETY: with address 0 the kernel chooses addresses that nothing uses.
        let start = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        (start.addr() != usize::MAX).then(|| Self { id, start: start.cast(), words: size / 8 })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the kernel mapped so many bytes at a page's start, they cannot be shortened, and
        // every bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }

    fn is_named(&self, name: &str) -> bool {
        let head = self.words().iter().take(HEAD);
        let bytes: Vec<u8> =
            head.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let ended = [name.as_bytes(), b"\0"].concat();
        bytes.windows(ended.len()).any(|window| window == ended)
    }

    /// Overwrites all of it.
    pub fn fill(&self, mut value: impl FnMut() -> u64) {
        self.words().iter().for_each(|word| word.store(value(), Ordering::Relaxed));
    }

    /// Overwrites one word, counted around the end.
    pub fn set(&self, at: usize, value: u64) {
        self.words()[at % self.words].store(value, Ordering::Relaxed);
    }

    /// Destroys it, as ipcrm(1).
    pub fn remove(&self) {
        remove(self.id);
    }
}

/// Destroys the segment of this number, as ipcrm(1).
pub fn remove(id: i32) {
    // SAFETY: numbers and a null pointer only; mappings stay until they are undone. One that is removed
    // already is what we want.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: no reference into the mapping outlives the segment.
        unsafe { libc::shmdt(self.start.cast()) };
    }
}
