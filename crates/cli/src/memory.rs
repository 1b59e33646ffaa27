//! What happens when no memory is left.
//!
//! The standard library would abort: by a signal, with a core file, and without the command. Here
//! it is an error of ours like any other, one line and status 125. Only `run` has a command that
//! can do without us: it is executed as it was given, from the arguments that lie on the stack,
//! which takes no memory of ours.

#![allow(unsafe_code, reason = "an allocator, and exec without memory")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use discnice_sys::process;

use crate::strict::OURS;
use crate::{child, inheritance};

/// The system's allocator; an allocation that fails ends the program.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: hands everything on to the system's allocator; a null pointer is never returned.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        there(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        there(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for all three.
        there(unsafe { System.realloc(start, layout, size) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for both.
        unsafe { System.dealloc(start, layout) }
    }
}

fn there(start: *mut u8) -> *mut u8 {
    if start.is_null() {
        exhausted();
    }
    start
}

/// This program's arguments, as the kernel laid them on the stack.
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());
/// Where the command stands among them that may run without limits; null if there is none.
static COMMAND: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());
/// The process that is to become the command.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Notes where the arguments lie. The standard library knows them only where the C library hands them to its initializers,
/// as glibc does and musl does not.
///
/// # Safety
/// They are those of `main`, which live as long as the process.
pub unsafe fn note_arguments(arguments: *const *const c_char) {
    ARGUMENTS.store(arguments.cast_mut(), Ordering::Relaxed);
}

/// The arguments, with the program's name as the first.
#[must_use]
pub fn words() -> Vec<OsString> {
    let words = noted().map(|word| OsStr::from_bytes(word.to_bytes()).to_owned());
    words.collect()
}

/// The arguments where they lie; none before they are noted.
fn noted() -> impl Iterator<Item = &'static CStr> {
    let mut place = ARGUMENTS.load(Ordering::Relaxed).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: `note_arguments` was given the arguments of `main`, which end with a null pointer; behind that this does
        // not go.
        let word = unsafe { place.as_ref() }.copied().filter(|word| !word.is_null())?;
        place = place.wrapping_add(1);
        // SAFETY: each of them is a string of C that lives as long as the process.
        Some(unsafe { CStr::from_ptr(word) })
    })
}

/// From now on the last `words` arguments are executed by this process, and by none that it forks, if memory runs out.
pub fn without_memory_execute(words: usize) {
    let arguments = ARGUMENTS.load(Ordering::Relaxed);
    let count = noted().count();
    if !arguments.is_null() && words > 0 && words < count {
        COMMAND.store(arguments.wrapping_add(count - words), Ordering::Relaxed);
        PROCESS.store(process::id(), Ordering::Relaxed);
    }
}

/// Hands that duty on to the child that this process is about to fork, and that will execute the
/// command.
pub fn leave_it_to_the_child() -> impl FnOnce() {
    let before = PROCESS.swap(0, Ordering::Relaxed);
    move || {
        if before != 0 {
            PROCESS.store(process::id(), Ordering::Relaxed);
        }
    }
}

#[cold]
fn exhausted() -> ! {
    let command = COMMAND.load(Ordering::Relaxed);
    if !command.is_null() && PROCESS.load(Ordering::Relaxed) == process::id() {
        say(b"discnice: not limited: no memory is left; --strict refuses to start it then\n");
        inheritance::restore();
        // SAFETY: the arguments end with a null pointer, and live as long as the process.
        unsafe { libc::execvp(*command, command) };
    }
    say(b"discnice: no memory is left\n");
    let status = child::status().unwrap_or(OURS);
    // SAFETY: ends the process; nothing that it registered for its end is needed.
    unsafe { libc::_exit(status.into()) }
}

fn say(line: &[u8]) {
    // SAFETY: the kernel reads a line that lives.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}
