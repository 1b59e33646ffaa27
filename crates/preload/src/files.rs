//! Descriptors get another meaning: what is known of the file and of the socket is forgotten together.

pub use crate::descriptors::{
    for_each_shaped, get, near, was_never_shaped, will_be_known, will_be_shaped,
};

use discnice_regulator::File;

use crate::{descriptors, engine, net};

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

/// All descriptors of a range, of those that are tracked, are about to be closed. close_range(2)
pub fn will_close_range(first: u32, last: u32, flags: i32) {
    // A child of vfork(2) closes its own descriptors, but this is its parent's memory.
    if flags & libc::CLOSE_RANGE_CLOEXEC as i32 != 0 || engine::is_borrowed() {
        return;
    }
    descriptors::for_each_used(first as usize, last as usize + 1, forget);
}

/// Forgets what a forked child must leave alone, because it is its parent's.
pub fn inherit() {
    descriptors::inherit();
    net::inherit();
}

/// Hands an error that a descriptor owes on to its duplicates: close(2) tells of it, and fsync(2) of a duplicate does
/// so all the same. Before Linux 6.10 the kernel does not say which they are.
#[cold]
pub fn hand_on(fd: i32, error: i32) {
    let Ok(error) = u32::try_from(error) else { return };
    for (number, file) in descriptors::FILES.first().iter().enumerate() {
        if number as i32 != fd && discnice_sys::file::is_duplicate(fd, number as i32) {
            file.owe_error(error);
        }
    }
}
