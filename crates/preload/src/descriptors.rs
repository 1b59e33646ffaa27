//! The state of each descriptor, by its number.

use core::sync::atomic::{AtomicUsize, Ordering};

use discnice_interpose::table::{LIMIT, Table};
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

/// Descriptors from here on are blank: a forked child need not look at them, each page of which is a page fault.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Something is about to be known of a descriptor.
pub fn will_be_known(fd: i32) {
    let end = fd as u32 as usize + 1;
    if end > KNOWN.load(Ordering::Relaxed) {
        KNOWN.fetch_max(end, Ordering::Relaxed);
    }
}

/// Forgets what is known of descriptors but for the errors that they owe: this is a forked child, and what is to be
/// done with the open files is its parent's to do.
pub fn inherit() {
    for_each_used(0, KNOWN.load(Ordering::Relaxed), |fd| {
        get(fd).into_iter().for_each(File::inherit);
    });
}

/// Calls `with` for each number from `first` to before `end` that may have an entry which is not blank.
pub fn for_each_used(first: usize, end: usize, with: impl Fn(i32)) {
    let mut number = first;
    while number < end.min(LIMIT) {
        let used = FILES.skip_unused(number);
        if used == number {
            with(number as i32);
            number += 1;
        } else {
            number = used;
        }
    }
}

/// A descriptor is about to be regulated, and so perhaps shaped.
pub fn will_be_shaped(fd: i32) {
    will_be_known(fd);
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
