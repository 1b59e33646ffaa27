//! The state of each descriptor, by its number.

use core::sync::atomic::{AtomicUsize, Ordering};

use discnice_interpose::table::Table;
use discnice_regulator::File;

pub static FILES: Table<File> = Table::new();

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
