//! Paths and texts in memory of ours.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Longest path that is kept.
pub(super) const PATH_MAX: usize = 1024;

/// A path that is written once and read by any thread.
#[derive(Debug)]
pub(super) struct PathBuffer {
    /// With a zero behind the path.
    pub(super) bytes: [AtomicU8; PATH_MAX + 1],
    length: AtomicU32,
}

impl PathBuffer {
    pub(super) const fn new() -> Self {
        Self { bytes: [const { AtomicU8::new(0) }; PATH_MAX + 1], length: AtomicU32::new(0) }
    }

    pub(super) fn set(&self, path: &[u8]) -> bool {
        if path.len() > PATH_MAX {
            return false;
        }
        for (to, from) in self.bytes.iter().zip(path.iter().chain([&0])) {
            to.store(*from, Ordering::Relaxed);
        }
        self.length.store(path.len() as u32, Ordering::Release);
        true
    }

    pub(super) fn length(&self) -> usize {
        self.length.load(Ordering::Acquire) as usize
    }

    pub(super) fn write(&self, to: &mut Writer<'_>) {
        for byte in self.bytes.iter().take(self.length()) {
            to.bytes(&[byte.load(Ordering::Relaxed)]);
        }
    }
}

/// Text into memory that is large enough; what is not fitting is cut.
pub(super) struct Writer<'a> {
    pub(super) text: &'a mut [u8],
    pub(super) length: usize,
}

impl Writer<'_> {
    pub(super) fn here(&self) -> *const c_char {
        self.text.as_ptr().wrapping_add(self.length).cast()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(to) = self.text.get_mut(self.length) {
                *to = *byte;
                self.length += 1;
            }
        }
    }
}
