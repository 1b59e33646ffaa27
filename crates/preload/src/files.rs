//! The state of each descriptor, by its number.

use core::sync::atomic::{AtomicUsize, Ordering};

use discnice_interpose::table::{CHUNK, LIMIT, Table};
use discnice_regulator::File;

use crate::{mappings, net};

static FILES: Table<File> = Table::new();

/// What prediction takes in a process with up to 1,024 descriptors, in bytes. What the processes of a class must
/// know together (which pages are dirty) is in its shared memory, once.
const _: () = assert!(CHUNK * File::PREDICTION + mappings::SIZE <= 64 << 10);

/// The state of a descriptor; `None` for numbers that cannot be one or are too high.
#[inline(always)]
pub fn get(fd: i32) -> Option<&'static File> {
    FILES.get(fd)
}

/// Returns the state of a descriptor in the low range that most programs stay in; `None` for
/// others.
#[inline(always)]
pub fn near(fd: i32) -> Option<&'static File> {
    FILES.first().get(fd as u32 as usize)
}

/// A call that returns a new descriptor returned this.
#[inline(always)]
pub fn opened(fd: i32) -> i32 {
    if !near(fd).is_some_and(File::is_blank) {
        forget_known(fd);
    }
    fd
}

#[cold]
#[inline(never)]
fn forget_known(fd: i32) {
    forget(fd);
}

/// The descriptor now means something else.
#[inline]
pub fn forget(fd: i32) {
    if let Some(file) = get(fd) {
        file.forget();
    }
    net::forget(fd);
}

/// All descriptors of a range, of those that are tracked, now mean something else.
pub fn forget_range(first: u32, last: u32) {
    let last = (last as usize).min(LIMIT - 1);
    let mut number = first as usize;
    while number <= last {
        let used = FILES.skip_unused(number);
        if used == number {
            forget(number as i32);
            number += 1;
        } else {
            number = used;
        }
    }
}

/// Descriptors from here on were never shaped: what ends a program need not look at them, each page
/// of which is a page fault.
#[unsafe(link_section = "discnice_hot")]
static SHAPED: AtomicUsize = AtomicUsize::new(0);

/// A descriptor is about to be regulated, and so perhaps shaped.
pub fn will_be_shaped(fd: i32) {
    let end = fd as u32 as usize + 1;
    if end > SHAPED.load(Ordering::Relaxed) {
        SHAPED.fetch_max(end, Ordering::Relaxed);
    }
}

/// Returns true if we never did anything to the descriptor. May return false for untouched ones as
/// well.
#[inline(always)]
pub fn was_never_shaped(fd: i32) -> bool {
    fd as u32 as usize >= SHAPED.load(Ordering::Relaxed)
}

/// Calls `with` for each descriptor of the first chunk that is shaped, or of a file that is to leave the cache.
pub fn for_each_shaped(mut with: impl FnMut(i32, &File)) {
    let end = SHAPED.load(Ordering::Relaxed);
    for (number, file) in FILES.first().iter().take(end).enumerate() {
        if !file.is_untouched() || file.is_foreign_to_cache() {
            with(number as i32, file);
        }
    }
}
