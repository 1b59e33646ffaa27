//! A table of something for each descriptor, by its number.
//!
//! In two levels: programs with few descriptors touch one page of it, programs with 65,536 get
//! further chunks when they use them; what lies above has no entry. Nothing here is ever freed.

#![allow(unsafe_code, reason = "chunks are mapped memory, of which zero is valid")]

use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_regulator::File;
use discnice_sys::memory;

/// Entries of a chunk.
pub const CHUNK: usize = 1024;
const CHUNKS: usize = 64;
/// Descriptors from this number on have no entry.
pub const LIMIT: usize = CHUNK * CHUNKS;

/// What a table may hold.
///
/// # Safety
/// All zeroes is a valid value and means the same as [`Entry::BLANK`].
pub unsafe trait Entry: Sync + Sized + 'static {
    /// Nothing is known.
    const BLANK: Self;
}

// SAFETY: a `File` is made of atomic integers, and zero is what `File::new` gives each.
unsafe impl Entry for File {
    const BLANK: Self = Self::new();
}

/// The table.
#[derive(Debug)]
pub struct Table<T> {
    first: [T; CHUNK],
    more: [AtomicPtr<[T; CHUNK]>; CHUNKS],
}

impl<T: Entry> Table<T> {
    /// A table of blank entries.
    #[allow(clippy::new_without_default, reason = "only statics hold one")]
    pub const fn new() -> Self {
        Self {
            first: [const { T::BLANK }; CHUNK],
            more: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS],
        }
    }

    /// The entry of a descriptor; `None` for numbers that cannot be one or are too high.
    #[inline(always)]
    pub fn get(&'static self, fd: i32) -> Option<&'static T> {
        match self.first.get(fd as u32 as usize) {
            Some(entry) => Some(entry),
            None => self.get_more(fd),
        }
    }

    #[cold]
    fn get_more(&'static self, fd: i32) -> Option<&'static T> {
        let number = usize::try_from(fd).ok()?;
        let slot = self.more.get(number / CHUNK)?;
        let mut chunk = slot.load(Ordering::Acquire);
        if chunk.is_null() {
            let fresh = memory::allocate(size_of::<[T; CHUNK]>()).ok()?.as_ptr().cast();
            let current = core::ptr::null_mut();
            chunk = match slot.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => fresh,
                // Another thread was first; the spare chunk is untouched memory and costs nothing.
                Err(first) => first,
            };
        }
        // SAFETY: the chunk is zeroed memory of the right size and page alignment, all zeroes is a
        // valid `T`, and it is never freed.
        let entries: &'static [T; CHUNK] = unsafe { &*chunk };
        entries.get(number % CHUNK)
    }

    /// The first number from `number` on that may have an entry which is not blank.
    pub fn skip_unused(&self, number: usize) -> usize {
        let chunk = number / CHUNK;
        let unused = chunk > 0
            && self.more.get(chunk).is_none_or(|slot| slot.load(Ordering::Relaxed).is_null());
        if unused { (chunk + 1) * CHUNK } else { number }
    }

    /// The first chunk.
    pub const fn first(&self) -> &[T; CHUNK] {
        &self.first
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;
    use std::thread;

    use super::*;

    // SAFETY: zero is what `BLANK` is.
    unsafe impl Entry for AtomicU32 {
        const BLANK: Self = Self::new(0);
    }

    /// A table that stays, as a static does.
    fn table() -> &'static Table<AtomicU32> {
        Box::leak(Box::new(Table::new()))
    }

    #[test]
    fn each_descriptor_has_its_own_entry() {
        let table = table();
        let fds: Vec<i32> = (0..5000).chain(LIMIT as i32 - 10..LIMIT as i32).collect();
        for fd in &fds {
            table.get(*fd).unwrap().store(*fd as u32 + 1, Ordering::Relaxed);
        }
        for fd in fds {
            assert_eq!(table.get(fd).unwrap().load(Ordering::Relaxed), fd as u32 + 1);
        }
        assert_eq!(table.first()[7].load(Ordering::Relaxed), 8);
    }

    #[test]
    fn what_is_no_descriptor_has_none() {
        for fd in [-1, i32::MIN, LIMIT as i32, i32::MAX] {
            assert!(table().get(fd).is_none(), "{fd}");
        }
    }

    #[test]
    fn chunks_that_were_never_used_are_skipped() {
        let table = table();
        assert_eq!((table.skip_unused(5), table.skip_unused(CHUNK)), (5, 2 * CHUNK));
        table.get(3 * CHUNK as i32 + 1);
        assert_eq!(table.skip_unused(2 * CHUNK + 9), 3 * CHUNK);
        assert_eq!(table.skip_unused(3 * CHUNK + 9), 3 * CHUNK + 9);
        // Past the end it goes on, for loops to end.
        assert!(table.skip_unused(LIMIT) > LIMIT);
    }

    #[test]
    fn threads_agree_about_a_chunk() {
        let table = table();
        let of = |fd: i32| move || std::ptr::from_ref(table.get(fd).unwrap()) as usize;
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(of(9 * CHUNK as i32))).collect();
        let places: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    }
}
