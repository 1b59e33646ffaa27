//! Short texts without an allocator.

use core::ffi::{CStr, c_char};

/// Longest path that is followed, with its end; the kernel's own limit would be a quarter of a
/// small thread's stack.
const LONGEST: usize = 512;

/// A path or a name; one that became too long is none.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Self { bytes: [0; LONGEST], length: 0 }
    }

    /// Makes it empty again.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends; returns whether all of it, and the end, had room.
    #[must_use]
    pub fn push(&mut self, more: &[u8]) -> bool {
        for byte in more {
            match self.bytes.get_mut(self.length) {
                Some(to) => *to = *byte,
                None => return false,
            }
            self.length += 1;
        }
        self.length < LONGEST
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Returns the text as the kernel takes a path.
    pub fn path(&mut self) -> Option<*const c_char> {
        *self.bytes.get_mut(self.length)? = 0;
        Some(self.bytes.as_ptr().cast())
    }

    /// Fills it with what `fill` writes, which returns the length.
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        self.length = fill(&mut self.bytes).min(LONGEST);
    }

    /// Cuts it before the first of these bytes.
    pub fn cut_at(&mut self, is_end: impl Fn(u8) -> bool) {
        self.length = self.bytes().iter().position(|byte| is_end(*byte)).unwrap_or(self.length);
    }

    /// Cuts a file's path to that of its directory; returns whether it was an absolute path.
    #[must_use]
    pub fn cut_to_folder(&mut self) -> bool {
        let slash = self.bytes().iter().rposition(|byte| *byte == b'/');
        self.length = slash.unwrap_or(0);
        slash.is_some()
    }

    /// Replaces it by the name; returns whether it had room.
    pub fn set(&mut self, text: &CStr) -> bool {
        self.clear();
        self.push(text.to_bytes())
    }
}
