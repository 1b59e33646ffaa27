//! Calls that open files by name.

use core::ffi::c_char;

use discnice_ledger::Class;
use discnice_sys::time;
use discnice_units::Moment;

use super::names::{change, look, operation};
use super::removals::open_emptied;
use crate::thread::local;
use crate::{engine, files};

/// A call that returns a new descriptor.
#[inline(always)]
pub fn open(real: impl FnOnce() -> i32) -> i32 {
    files::opened(operation(real))
}

/// A call that opens `name` with the flags of open(2), of which one empties the file.
#[inline(always)]
pub fn open_named(
    directory: i32,
    name: *const c_char,
    flags: i32,
    real: impl FnOnce() -> i32,
) -> i32 {
    if flags & libc::O_TRUNC != 0 {
        open_emptied(directory, name, real)
    } else if flags & libc::O_EXCL != 0 {
        files::opened(change(directory, name, real))
    } else if flags & libc::O_ACCMODE == libc::O_RDONLY
        || !engine::class().is_some_and(Class::predicts)
    {
        let fd = files::opened(look(directory, name, real));
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            opened_to_read(fd);
        }
        fd
    } else {
        open_to_write(real)
    }
}

/// A descriptor was opened to read a file.
#[inline(always)]
pub fn opened_to_read(fd: i32) {
    if engine::class().is_some_and(Class::protects_cache) {
        look_into_the_cache(fd);
    }
}

#[cold]
#[inline(never)]
fn look_into_the_cache(fd: i32) {
    if let (Some(regulator), Some(file)) = (engine::regulator(), files::get(fd)) {
        files::will_be_shaped(fd);
        regulator.opened_to_read(fd, file);
    }
}

/// An existing file is opened to be written, which costs something by itself on overlayfs.
#[inline(always)]
fn open_to_write(real: impl FnOnce() -> i32) -> i32 {
    let begun = time::now();
    open(|| {
        let fd = real();
        if fd >= 0 {
            opened_to_write(fd, begun);
        }
        fd
    })
}

#[inline(never)]
fn opened_to_write(fd: i32, begun: Moment) {
    if let Some(regulator) = engine::regulator() {
        regulator.opened_to_write(&local().thread, fd, begun);
    }
}
