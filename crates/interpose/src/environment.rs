//! How the library gets from a program into its children, unseen by both.
//!
//! Two variables carry it: `LD_PRELOAD`, for the dynamic linker, and `DISCNICE`, which names the
//! class. When a program starts they are taken out of its environment, so that it finds just
//! what its parent gave it; when it starts another program they are put back, whatever
//! environment it passes, `env -i` included.

#![allow(unsafe_code, reason = "environment blocks are raw pointers of the program")]

use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};

use discnice_ledger::Token;
use discnice_ledger::token::{self, NUMBERS_MAX, VARIABLE};
use discnice_sys::block::FILE_NAME;
use discnice_sys::opened::Opened;
use discnice_sys::{execution, memory};

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// With a value it makes the dynamic linker list what it would load, instead of executing the program. ld.so(8)
const TRACE: &[u8] = b"LD_TRACE_LOADED_OBJECTS=";
/// The library's file name.
const LIBRARY: &[u8] = b"libdiscnice.so";

/// What of ours a program finds in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// Both variables: the dynamic linker loads the library, which takes them out.
    Library,
    /// The class alone, by which the watcher recognises the program's descendants.
    Class,
    /// Nothing.
    Nothing,
}

/// Longest text of the variable without the directory: the name, the numbers, a colon, the end.
const TOKEN_MAX: usize = VARIABLE.len() + NUMBERS_MAX + 2;

/// What is known of our two variables, once they have been taken out of the environment: programs may overwrite their environment's
/// memory, so it is copied.
#[derive(Debug)]
pub struct Variables {
    /// Path of the library; empty while nothing was taken.
    library: PathBuffer,
    /// The directory of blocks that are files; empty where none of the class's is.
    directory: PathBuffer,
}

const PATH_MAX: usize = 1024;
/// Longest path of a block: the directory, a slash, the file's name and its end.
pub const BLOCK_PATH: usize = PATH_MAX + 1 + FILE_NAME.len() + 16 + 1;

#[derive(Debug)]
struct PathBuffer {
    /// With a zero behind the path.
    bytes: [core::sync::atomic::AtomicU8; PATH_MAX + 1],
    length: AtomicU32,
}

impl PathBuffer {
    const fn new() -> Self {
        Self {
            bytes: [const { core::sync::atomic::AtomicU8::new(0) }; PATH_MAX + 1],
            length: AtomicU32::new(0),
        }
    }

    fn set(&self, path: &[u8]) -> bool {
        if path.len() > PATH_MAX {
            return false;
        }
        for (to, from) in self.bytes.iter().zip(path) {
            to.store(*from, Ordering::Relaxed);
        }
        self.length.store(path.len() as u32, Ordering::Release);
        true
    }

    fn length(&self) -> usize {
        self.length.load(Ordering::Acquire) as usize
    }

    fn write(&self, to: &mut Writer<'_>) {
        for byte in self.bytes.iter().take(self.length()) {
            to.bytes(&[byte.load(Ordering::Relaxed)]);
        }
    }
}

impl Variables {
    /// Nothing is known.
    #[allow(clippy::new_without_default, reason = "only statics hold it")]
    pub const fn new() -> Self {
        Self { library: PathBuffer::new(), directory: PathBuffer::new() }
    }

    /// Writes the path of the block that is the file of this number, with the zero at its end; `false` where the
    /// directory is not known.
    pub fn block_path(&self, number: u64, to: &mut [u8; BLOCK_PATH]) -> bool {
        let mut writer = Writer { text: to, length: 0 };
        self.directory.write(&mut writer);
        writer.bytes(b"/");
        writer.bytes(FILE_NAME.as_bytes());
        token::hexadecimal(number, &mut |part| writer.bytes(part));
        writer.bytes(b"\0");
        self.directory.length() > 0
    }

    /// Takes our variables out of a program's environment; returns what they said.
    ///
    /// # Safety
    /// `block` is the environment that the kernel made for this program: an array of C strings that
    /// ends with a null pointer, all of it writable and not yet in use.
    pub unsafe fn take(&self, block: *mut *mut c_char) -> Option<Token<'static>> {
        let mut token = None;
        let mut keep = block;
        let mut at = block;
        // SAFETY: the caller vouches for the block; `keep` never overtakes `at`.
        unsafe {
            while !(*at).is_null() {
                let entry = *at;
                let text = CStr::from_ptr(entry).to_bytes();
                if let Some(value) = text.strip_prefix(VARIABLE) {
                    token = Token::parse(value).map(|token| self.keep(token));
                    erase(entry, text.len());
                } else if let Some(value) = text.strip_prefix(PRELOAD)
                    && let Some(rest) = self.take_library(value)
                {
                    // What else was preloaded stays, under the same name, in the same memory.
                    erase(entry, if rest > 0 { rest } else { text.len() });
                    if rest > 0 {
                        let name = entry.add(rest);
                        ptr::copy(PRELOAD.as_ptr().cast(), name, PRELOAD.len());
                        *keep = name;
                        keep = keep.add(1);
                    }
                } else {
                    *keep = entry;
                    keep = keep.add(1);
                }
                at = at.add(1);
            }
            *keep = ptr::null_mut();
        }
        token
    }

    /// If the list of libraries begins with ours: notes its path and returns how long the part is
    /// that goes, or zero when nothing else is in the list.
    fn take_library(&self, list: &[u8]) -> Option<usize> {
        let end = list.iter().position(|byte| matches!(byte, b':' | b' ')).unwrap_or(list.len());
        let (path, rest) = list.split_at_checked(end)?;
        if !path.ends_with(LIBRARY) || !self.library.set(path) {
            return None;
        }
        Some(if rest.len() > 1 { end + 1 } else { 0 })
    }

    /// Returns true if the dynamic linker would find the library from here, and may map it: a program
    /// may have changed its root directory or its mounts since it loaded it.
    pub fn is_reachable(&self) -> bool {
        if self.library.length() == 0 {
            return false;
        }
        let library = Opened::open(libc::AT_FDCWD, self.library.bytes.as_ptr().cast());
        library.is_ok_and(|library| !execution::is_forbidden(library.fd()))
    }

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

    /// The token without the program's memory: the directory is noted apart.
    fn keep(&self, token: Token<'_>) -> Token<'static> {
        if let Some(directory) = token.directory {
            self.directory.set(directory);
        }
        let Token { block, nonce, member, .. } = token;
        Token { block, nonce, member, directory: None }
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

/// Makes text that is ours disappear also from `/proc/PID/environ`, which shows this memory.
///
/// # Safety
/// So many bytes are writable and not yet in use.
unsafe fn erase(text: *mut c_char, length: usize) {
    // SAFETY: the caller vouches for the bytes.
    unsafe { text.write_bytes(0, length) };
}

/// Memory for one environment block, kept for the thread's next one. A child of vfork(2) uses
/// its parent's, which waits for it.
#[derive(Debug, Default)]
pub struct Scratch {
    start: Cell<Option<NonNull<u8>>>,
    length: Cell<usize>,
}

impl Scratch {
    /// At least `length` bytes; what was here before is given up.
    fn reserve(&self, length: usize) -> Option<NonNull<u8>> {
        if let Some(start) = self.start.get() {
            if self.length.get() >= length {
                return Some(start);
            }
            self.start.set(None);
            // SAFETY: blocks of earlier calls are not used any more: each lived for one call.
            unsafe { memory::free(start, self.length.get()) };
        }
        let length = length.next_multiple_of(memory::PAGE);
        let start = memory::allocate(length).ok()?;
        self.length.set(length);
        self.start.set(Some(start));
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
    /// Returns true if the eight bytes around `address` can be read.
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

/// Counts the entries and finds the value of `LD_PRELOAD`; `None` when a class is named, when libraries are to be listed,
/// or when the kernel would answer EFAULT.
unsafe fn survey<'a>(block: *const *const c_char) -> Option<(usize, Option<&'a [u8]>)> {
    let (mut entries, mut preload) = (0, None);
    let mut at = block;
    let (mut table, mut strings) = (Readable::default(), Readable::default());
    // SAFETY: the table and the strings are readable, as the kernel said.
    unsafe {
        while !at.is_null() {
            if !table.at(at) {
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
            preload = preload.or(text.strip_prefix(PRELOAD));
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

/// Text into memory that is large enough; what is not fitting is cut.
struct Writer<'a> {
    text: &'a mut [u8],
    length: usize,
}

impl Writer<'_> {
    fn here(&self) -> *const c_char {
        self.text.as_ptr().wrapping_add(self.length).cast()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(to) = self.text.get_mut(self.length) {
                *to = *byte;
                self.length += 1;
            }
        }
    }
}
