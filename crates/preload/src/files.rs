//! Descriptors get another meaning: what is known of the file and of the socket is forgotten together.

pub use crate::descriptors::{for_each_shaped, get, near, was_never_shaped, will_be_shaped};

use discnice_interpose::table::LIMIT;
use discnice_regulator::File;

use crate::{descriptors, net};

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
        let used = descriptors::FILES.skip_unused(number);
        if used == number {
            forget(number as i32);
            number += 1;
        } else {
            number = used;
        }
    }
}
