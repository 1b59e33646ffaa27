//! Calls that take away what files hold: of that, what is dirty will not be written.

use core::ffi::c_char;

use discnice_ledger::trace::Why;
use discnice_regulator::{Access, FileStatus};
use discnice_sys::file;

use super::names::{Begun, Object, begin_after, name_to_change, perform};
use crate::thread::local;
use crate::{engine, files};

/// How such a call has begun, and what the file was before, in a class that remembers what is dirty.
type Removal = (Begun, Option<FileStatus>);

/// A call that takes a name off a file, which may be its last one. `path` is the program's.
#[inline(always)]
pub fn delete(directory: i32, path: *const c_char, real: impl FnOnce() -> i32) -> i32 {
    let (begun, before) = begin_deletion(directory, path);
    leave(0, before, perform(begun, Access::Changes, Object::Unknown, real))
}

/// A call that cuts an open file to `length` bytes.
#[inline(always)]
pub fn truncate(fd: i32, length: i64, real: impl FnOnce() -> i32) -> i32 {
    let (begun, before) = begin_truncation(fd);
    leave(length, before, perform(begun, Access::Looks, Object::Unknown, real))
}

/// A call that cuts the file of this name to `length` bytes.
#[inline(always)]
pub fn truncate_named(path: *const c_char, length: i64, real: impl FnOnce() -> i32) -> i32 {
    let (begun, before) = begin_emptying(libc::AT_FDCWD, path);
    leave(length, before, perform(begun, Access::Looks, Object::Unknown, real))
}

/// A call that opens a file and empties it.
#[inline(always)]
pub fn open_emptied(directory: i32, name: *const c_char, real: impl FnOnce() -> i32) -> i32 {
    let (begun, before) = begin_emptying(directory, name);
    let fd = files::opened(perform(begun, Access::Changes, Object::Unknown, real));
    if let Some(before) = before {
        emptied(fd, before);
    }
    fd
}

#[inline(never)]
fn begin_deletion(directory: i32, path: *const c_char) -> Removal {
    let turn = name_to_change(directory, path);
    let before = watched(|| file::status_now(directory, path).ok());
    begin(turn, before.filter(|status| status.regular && status.links == 1))
}

#[inline(never)]
fn begin_truncation(fd: i32) -> Removal {
    begin(None, watched(|| file::status(fd).ok()))
}

#[inline(never)]
fn begin_emptying(directory: i32, name: *const c_char) -> Removal {
    let turn = name_to_change(directory, name);
    begin(turn, watched(|| file::status_at(directory, name).ok()))
}

fn begin(turn: Option<Why>, before: Option<file::Status>) -> Removal {
    local().thread.deletions.note_removal();
    (engine::class().and_then(|_| begin_after(turn)), before.map(FileStatus::from))
}

/// A call returned `result`, after which a file holds `length` bytes, if it succeeded.
#[inline(always)]
fn leave(length: i64, before: Option<FileStatus>, result: i32) -> i32 {
    if let (0, Some(before)) = (result, before) {
        truncated(before, length);
    }
    result
}

#[inline(never)]
fn truncated(before: FileStatus, length: i64) {
    if let Some(regulator) = engine::regulator() {
        regulator.truncated(before, length.max(0) as u64);
    }
}

#[inline(never)]
fn emptied(fd: i32, before: FileStatus) {
    if let (Some(file), Some(regulator)) = (files::get(fd), engine::regulator())
        && before.size > 0
    {
        files::will_be_known(fd);
        regulator.emptied(fd, file, before);
    }
}

/// What a question says that is only worth asking in a class that remembers what is dirty.
#[inline(always)]
fn watched<T>(question: impl FnOnce() -> Option<T>) -> Option<T> {
    let class = engine::class()?;
    if class.estimation().regions().is_unused() { None } else { question() }
}
