//! Adds our variables to the environment of a program that is about to be executed.
#![allow(unsafe_code, reason = "environment blocks are raw pointers of the program")]

use core::ffi::{CStr, c_char};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use discnice_ledger::Token;
use discnice_ledger::token::{NUMBERS_MAX, VARIABLE};
use discnice_sys::memory;

use super::text::Writer;
use super::{Carry, PRELOAD, Variables};

/// With a value it makes the dynamic linker list what it would load, instead of executing the program. ld.so(8)
const TRACE: &[u8] = b"LD_TRACE_LOADED_OBJECTS=";
/// Longest text of the variable without the directory: the name, the numbers, a colon, the end.
const TOKEN_MAX: usize = VARIABLE.len() + NUMBERS_MAX + 2;

impl Variables {
    /// Adds to `block` those of our two variables that are carried; the result is valid until the
    /// thread's next call. A block that names a class already, as that of a nested `discnice run`, is
    /// left alone; so is one for a program that is not executed but has its libraries listed.
    ///
    /// # Safety
    /// The block does not change meanwhile. It may be anything: `None` is returned where the kernel
    /// would answer EFAULT.
    pub unsafe fn with_ours(
        &self,
        block: *const *const c_char,
        scratch: &Scratch,
        token: &Token<'_>,
        carry: Carry,
    ) -> Option<*const *const c_char> {
        if carry == Carry::Nothing || self.library.length() == 0 {
            return None;
        }
        // SAFETY: the caller vouches for the block.
        let (entries, preload) = unsafe { survey(block)? };
        let others = preload.map_or(&[][..], |value| value);
        let pointers = (entries + 3) * size_of::<*const c_char>();
        let class = TOKEN_MAX + self.directory.length();
        let text = PRELOAD.len() + self.library.length() + 1 + others.len() + 1 + class;
        let start = scratch.reserve(pointers + text)?;
        // SAFETY: the memory is ours alone, large enough for both parts, aligned to a page.
        let (table, text) = unsafe {
            let table = start.cast::<*const c_char>();
            (table.as_ptr(), core::slice::from_raw_parts_mut(start.add(pointers).as_ptr(), text))
        };
        let mut writer = Writer { text, length: 0 };
        let library = writer.here();
        writer.bytes(PRELOAD);
        self.library.write(&mut writer);
        if !others.is_empty() {
            writer.bytes(b":");
            writer.bytes(others);
        }
        writer.bytes(b"\0");
        let class = writer.here();
        self.write_token(token, &mut writer);
        // SAFETY: the table has room for all entries, our two and the end.
        unsafe { fill(table, block, (carry == Carry::Library).then_some(library), class) };
        Some(table)
    }

    fn write_token(&self, token: &Token<'_>, to: &mut Writer<'_>) {
        to.bytes(VARIABLE);
        token.write(|part| to.bytes(part));
        if self.directory.length() > 0 {
            to.bytes(b":");
            self.directory.write(to);
        }
        to.bytes(b"\0");
    }
}

/// Memory for one environment block, kept for the thread's next one. A child of vfork(2) uses
/// its parent's, which waits for it.
#[derive(Debug, Default)]
pub struct Scratch {
    start: AtomicPtr<u8>,
    length: AtomicUsize,
}

impl Scratch {
    /// No memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { start: AtomicPtr::new(ptr::null_mut()), length: AtomicUsize::new(0) }
    }

    /// At least `length` bytes; what was here before is given up.
    fn reserve(&self, length: usize) -> Option<NonNull<u8>> {
        if let Some(start) = NonNull::new(self.start.load(Ordering::Relaxed)) {
            let there = self.length.load(Ordering::Relaxed);
            if there >= length {
                return Some(start);
            }
            self.start.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: blocks of earlier calls are not used any more: each lived for one call.
            unsafe { memory::free(start, there) };
        }
        let length = length.next_multiple_of(memory::PAGE);
        let start = memory::allocate(length).ok()?;
        self.length.store(length, Ordering::Relaxed);
        self.start.store(start.as_ptr(), Ordering::Relaxed);
        Some(start)
    }
}

/// Answers whether memory can be read, asking the kernel once for each page.
#[derive(Default)]
struct Readable {
    /// The page that was found readable last.
    page: Option<usize>,
}

impl Readable {
    /// Returns true if what an aligned address points to can be read.
    fn at<T>(&mut self, address: *const T) -> bool {
        let page = address as usize / memory::PAGE;
        if self.page == Some(page) {
            return true;
        }
        let readable = memory::can_read(address as usize, 1);
        if readable {
            self.page = Some(page);
        }
        readable
    }

    /// Returns true if all of a C string can be read.
    fn string(&mut self, text: *const c_char) -> bool {
        let mut at = text;
        while self.at(at) {
            let rest = memory::PAGE - at as usize % memory::PAGE;
            // SAFETY: the rest of the page is readable, as the kernel just said.
            let bytes = unsafe { core::slice::from_raw_parts(at.cast::<u8>(), rest) };
            if bytes.contains(&0) {
                return true;
            }
            at = at.wrapping_add(rest);
        }
        false
    }
}

/// Counts the entries and finds the value of `LD_PRELOAD`, of several the last, as ld.so(8) does; `None` when a class is
/// named, when libraries are to be listed, or when the kernel would answer EFAULT.
unsafe fn survey<'a>(block: *const *const c_char) -> Option<(usize, Option<&'a [u8]>)> {
    let (mut entries, mut preload) = (0, None);
    let mut at = block;
    let (mut table, mut strings) = (Readable::default(), Readable::default());
    // SAFETY: the table and the strings are readable, as the kernel said.
    unsafe {
        while !at.is_null() {
            // One that is not aligned may lie across two pages, of which the second cannot be read.
            if !at.is_aligned() || !table.at(at) {
                return None;
            }
            if (*at).is_null() {
                break;
            }
            if !strings.string(*at) {
                return None;
            }
            let text = CStr::from_ptr(*at).to_bytes();
            if text.starts_with(VARIABLE)
                || text.strip_prefix(TRACE).is_some_and(|value| !value.is_empty())
            {
                return None;
            }
            preload = text.strip_prefix(PRELOAD).or(preload);
            entries += 1;
            at = at.add(1);
        }
    }
    Some((entries, preload))
}

/// Copies the entries, with the library's in the place of another `LD_PRELOAD`, which it contains.
unsafe fn fill(
    table: *mut *const c_char,
    block: *const *const c_char,
    library: Option<*const c_char>,
    class: *const c_char,
) {
    let mut to = table;
    let mut at = block;
    // SAFETY: the caller made the table large enough and vouches for the block.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if library.is_none() || !CStr::from_ptr(*at).to_bytes().starts_with(PRELOAD) {
                *to = *at;
                to = to.add(1);
            }
            at = at.add(1);
        }
        for entry in library.into_iter().chain([class]) {
            *to = entry;
            to = to.add(1);
        }
        *to = ptr::null();
    }
}
