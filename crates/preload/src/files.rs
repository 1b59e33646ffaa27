//! The state of each descriptor, by its number.

use discnice_regulator::File;

use crate::net;
use crate::table::{Entry, LIMIT, Table};

// SAFETY: a `File` is made of atomic integers, and zero is what `File::new` gives each.
unsafe impl Entry for File {
    const BLANK: Self = Self::new();
}

static FILES: Table<File> = Table::new();

/// The state of a descriptor; `None` for numbers that cannot be one or are too high.
#[inline(always)]
pub fn get(fd: i32) -> Option<&'static File> {
    FILES.get(fd)
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

/// Calls `with` for each descriptor of the first chunk about which something is known.
pub fn for_each(mut with: impl FnMut(i32, &File)) {
    for (number, file) in FILES.first().iter().enumerate() {
        if !file.is_untouched() {
            with(number as i32, file);
        }
    }
}
