//! libc's buffered streams.
//!
//! What they read, write, seek and close does not pass through the names `read`, `write`, `lseek` and `close`: libc
//! calls its own copies, through a table of functions that all ordinary streams share (`_IO_file_jumps`).
//! Four of its entries are replaced by ours. The table itself stays where it is, so libc's check
//! that a stream's table is a genuine one still holds; no code is changed, only four pointers in
//! memory that the dynamic linker had made read-only after relocation, and that is made so again.
//! Nothing is replaced unless each entry is just the function that libc exports under the name
//! that belongs there.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_sys::memory;

use crate::real::{Real, descriptor, reals};
use crate::{calls, gated};

/// Entries of the table (`struct _IO_jump_t` in glibc's libioP.h) that read, write, seek and close.
const READ: usize = 14;
const WRITE: usize = 15;
const SEEK: usize = 16;
const CLOSE: usize = 17;
/// Size of a `FILE`: programs know its fields (bits/types/struct_FILE.h).
const FILE: usize = 216;
/// `_IO_ERR_SEEN`: what ferror(3) asks for.
const ERROR_SEEN: c_int = 0x20;

type Transfer = unsafe extern "C" fn(*mut c_void, *mut c_void, isize) -> isize;
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
type Seek = unsafe extern "C" fn(*mut c_void, i64, c_int) -> i64;

reals! {
    IO_FILE_READ = c"_IO_file_read";
    IO_FILE_WRITE = c"_IO_file_write";
    IO_FILE_SEEK = c"_IO_file_seek";
    IO_FILE_CLOSE = c"_IO_file_close";
    IO_FILE_JUMPS = c"_IO_file_jumps";
    IO_WFILE_JUMPS = c"_IO_wfile_jumps";
}

/// Puts our functions into libc's tables, if they are what we know.
pub fn enter() {
    let functions = [&IO_FILE_READ, &IO_FILE_WRITE, &IO_FILE_SEEK, &IO_FILE_CLOSE];
    if !functions.into_iter().all(Real::exists) {
        return;
    }
    let tables = [&IO_FILE_JUMPS, &IO_WFILE_JUMPS].into_iter().filter(|table| table.exists());
    let known = tables.map(entries).filter(|all| all.iter().all(Entry::is_known)).flatten();
    let places = known.clone().map(|entry| ptr::from_ref(entry.place) as usize);
    let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { return };
    // All that lies between has been relocated too: each change of rights is dear.
    let page = first & !(memory::PAGE - 1);
    let length = (last + size_of::<*mut c_void>() - page).next_multiple_of(memory::PAGE);
    // SAFETY: the pages are libc's relocated data, writable until the linker protected them;
    // adding the right to write takes nothing from other code.
    if unsafe { memory::protect(page, length, true) }.is_err() {
        return;
    }
    known.for_each(|entry| entry.place.store(entry.ours, Ordering::Release));
    // SAFETY: the pages were read-only before (RELRO), so no code writes to them.
    let _ = unsafe { memory::protect(page, length, false) };
}

/// An entry of a table: where it stands, what must stand there, and what shall.
#[derive(Debug, Clone, Copy)]
struct Entry {
    place: &'static AtomicPtr<c_void>,
    theirs: *mut c_void,
    ours: *mut c_void,
}

impl Entry {
    fn is_known(&self) -> bool {
        self.place.load(Ordering::Relaxed) == self.theirs
    }
}

/// Returns the entries of a table that read, write, seek and close.
fn entries(table: &Real) -> [Entry; 4] {
    let entry =
        |number, real: &Real, ours| Entry { place: place(table, number), theirs: real.get(), ours };
    [
        entry(READ, &IO_FILE_READ, read as *mut c_void),
        entry(WRITE, &IO_FILE_WRITE, write as *mut c_void),
        entry(SEEK, &IO_FILE_SEEK, seek as *mut c_void),
        entry(CLOSE, &IO_FILE_CLOSE, close as *mut c_void),
    ]
}

/// Returns the place of one of these entries.
fn place(table: &Real, entry: usize) -> &'static AtomicPtr<c_void> {
    let slots = table.get().cast::<AtomicPtr<c_void>>();
    // SAFETY: libc exports the table as an object of 21 pointers; all four lie within it.
    unsafe { &*slots.add(entry) }
}

unsafe extern "C" fn read(stream: *mut c_void, buffer: *mut c_void, count: isize) -> isize {
    // SAFETY: `enter` found this function with this signature in the table.
    let real = unsafe { core::mem::transmute::<*mut c_void, Transfer>(IO_FILE_READ.get()) };
    // SAFETY: libc gave us this stream.
    let fd = unsafe { descriptor(stream) };
    calls::read(fd, count.max(0) as usize, None, false, |done, length| {
        let buffer = buffer.wrapping_byte_add(done);
        match gated::read(fd, buffer, length) {
            Some(result) => result,
            // SAFETY: libc's own arguments, or a part of its buffer.
            None => unsafe { real(stream, buffer, length as isize) },
        }
    })
}

unsafe extern "C" fn write(stream: *mut c_void, buffer: *mut c_void, count: isize) -> isize {
    // SAFETY: `enter` found this function with this signature in the table.
    let real = unsafe { core::mem::transmute::<*mut c_void, Transfer>(IO_FILE_WRITE.get()) };
    // SAFETY: libc gave us this stream.
    let fd = unsafe { descriptor(stream) };
    let ended = Cell::new(false);
    let piece = |done: usize, length: usize| {
        // SAFETY: libc's own arguments, or a part of its buffer.
        let written = unsafe { real(stream, buffer.wrapping_byte_add(done), length as isize) };
        // It goes on until all is written, unless the kernel refuses.
        ended.set(written < length as isize);
        written
    };
    let count = count.max(0) as usize;
    if calls::is_beyond_memory(buffer, count) {
        return calls::start_io(|| piece(0, count));
    }
    let mut done = 0;
    while done < count && !ended.get() {
        let part = |from: usize, length: usize| piece(done + from, length);
        let written = calls::write(fd, count - done, None, false, part);
        if written < 0 {
            // SAFETY: libc gave us this stream.
            unsafe { note_error(stream) };
            break;
        }
        done += written as usize;
    }
    done as isize
}

/// Notes in a stream that a write was refused. libc takes what was written, and never a negative number, from
/// the function that writes, and relies on it for this note.
///
/// # Safety
/// `stream` is a stream of libc's, which this thread has locked.
unsafe fn note_error(stream: *mut c_void) {
    let flags = stream.cast::<c_int>();
    // SAFETY: `FILE` begins with its flags (bits/types/struct_FILE.h); the caller vouches for the stream.
    unsafe { flags.write(flags.read() | ERROR_SEEN) };
}

/// Sets where a stream reads and writes next: linkers write sections in any order through one.
unsafe extern "C" fn seek(stream: *mut c_void, offset: i64, whence: c_int) -> i64 {
    // SAFETY: `enter` found this function with this signature in the table.
    let real = unsafe { core::mem::transmute::<*mut c_void, Seek>(IO_FILE_SEEK.get()) };
    // SAFETY: libc gave us this stream; its own arguments.
    unsafe { calls::seek(descriptor(stream), || real(stream, offset, whence)) }
}

/// Closes what a stream reads or writes, when all that it had buffered is written.
unsafe extern "C" fn close(stream: *mut c_void) -> c_int {
    // SAFETY: `enter` found this function with this signature in the table.
    let real = unsafe { core::mem::transmute::<*mut c_void, Close>(IO_FILE_CLOSE.get()) };
    // SAFETY: libc gave us this stream; its own argument.
    unsafe { calls::settled(descriptor(stream), || real(stream)) }
}

/// Returns true if a stream's descriptor is closed by the function above.
///
/// # Safety
/// `stream` is an open stream of libc's.
pub unsafe fn settles(stream: *mut c_void) -> bool {
    let known = [&IO_FILE_JUMPS, &IO_WFILE_JUMPS];
    if !known.into_iter().all(Real::exists) {
        return false;
    }
    // SAFETY: in the libc that exports these tables each `FILE` is followed by the address of its table
    // (`struct _IO_FILE_plus` in libioP.h).
    let table = unsafe { stream.byte_add(FILE).cast::<*mut c_void>().read() };
    let ours = |entry: &AtomicPtr<c_void>| entry.load(Ordering::Relaxed) == close as *mut c_void;
    known.into_iter().any(|one| one.get() == table && ours(place(one, CLOSE)))
}
