//! Takes our variables out of the environment of a program that starts.
#![allow(unsafe_code, reason = "the environment is the kernel's block of raw pointers")]

use core::ffi::{CStr, c_char};
use core::ptr;

use discnice_ledger::Token;
use discnice_ledger::token::VARIABLE;

use super::{PRELOAD, Variables};

/// The library's file name.
const LIBRARY: &[u8] = b"libdiscnice.so";

impl Variables {
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

    /// The token without the program's memory: the directory is noted apart.
    fn keep(&self, token: Token<'_>) -> Token<'static> {
        if let Some(directory) = token.directory {
            self.directory.set(directory);
        }
        let Token { block, nonce, member, .. } = token;
        Token { block, nonce, member, directory: None }
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
