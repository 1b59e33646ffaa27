//! The state of each descriptor, by its number.
//!
//! A table in two levels: programs with few descriptors touch one page of it, programs with
//! 65,536 get further chunks when they use them; above that a descriptor is accounted but not
//! shaped. Nothing here is ever freed.

use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_regulator::File;
use discnice_sys::memory;

const CHUNK: usize = 1024;
const CHUNKS: usize = 64;

static FIRST: [File; CHUNK] = [const { File::new() }; CHUNK];
static MORE: [AtomicPtr<[File; CHUNK]>; CHUNKS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];

/// The state of a descriptor; `None` for numbers that cannot be one or are too high.
#[inline(always)]
pub fn get(fd: i32) -> Option<&'static File> {
    match FIRST.get(fd as u32 as usize) {
        Some(file) => Some(file),
        None => get_more(fd),
    }
}

#[cold]
fn get_more(fd: i32) -> Option<&'static File> {
    let number = usize::try_from(fd).ok()?;
    let slot = MORE.get(number / CHUNK)?;
    let mut chunk = slot.load(Ordering::Acquire);
    if chunk.is_null() {
        let fresh = memory::allocate(size_of::<[File; CHUNK]>()).ok()?.as_ptr().cast();
        let current = core::ptr::null_mut();
        chunk = match slot.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            // Another thread was first; the spare chunk is untouched memory and costs nothing.
            Err(first) => first,
        };
    }
    // SAFETY: the chunk is zeroed memory of the right size and page alignment, all zeroes is a
    // valid `File`, and it is never freed.
    let files: &'static [File; CHUNK] = unsafe { &*chunk };
    files.get(number % CHUNK)
}

/// The descriptor now means something else.
#[inline]
pub fn forget(fd: i32) {
    if let Some(file) = get(fd) {
        file.forget();
    }
}

/// All descriptors of a range, of those that are tracked, now mean something else.
pub fn forget_range(first: u32, last: u32) {
    let last = last.min((CHUNK * CHUNKS - 1) as u32);
    let mut number = first;
    while number <= last {
        let chunk = number as usize / CHUNK;
        let unused =
            chunk > 0 && MORE.get(chunk).is_none_or(|slot| slot.load(Ordering::Relaxed).is_null());
        if unused {
            number = ((chunk + 1) * CHUNK) as u32;
        } else {
            forget(number as i32);
            number += 1;
        }
    }
}

/// Calls `with` for each descriptor of the first chunk about which something is known.
pub fn for_each(mut with: impl FnMut(i32, &File)) {
    for (number, file) in FIRST.iter().enumerate() {
        if !file.is_untouched() {
            with(number as i32, file);
        }
    }
}
