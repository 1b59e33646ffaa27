//! What is read to start a program: its file, its interpreter, the libraries that it needs.
//!
//! The kernel maps them and page faults read them, each a whole read-ahead window of the device.
//! Under a low limit that is seconds' worth at once. So they are brought into the page cache
//! before, in slices that the regulator paces ([`Regulator::bring_in`]); then no fault reads.
//!
//! Where things are:
//! - `walk`: which files, in which order; the entry points [`program`], [`command`], [`library`];
//! - `kind`: what kind of program a file is, [`kind()`];
//! - `elf`: what an ELF file says about its segments and the libraries it needs;
//! - `cache`: where ld.so(8) finds a library by its name, `/etc/ld.so.cache`;
//! - `script`: which interpreter a script names;
//! - `window`: how much a page fault reads;
//! - `text`: paths in small buffers.
//!
//! All of it is a guess about what the kernel and the dynamic linker will do next: a wrong one
//! costs time, never a result. Files are untrusted: every offset is checked against what can be
//! read there, every loop is bounded. Nothing is allocated, and the stack used is below 4 KiB:
//! threads with 16 KiB stacks execute programs too, and so do children of vfork(2).
#![deny(unsafe_code)]

mod cache;
mod elf;
mod kind;
mod script;
mod text;
mod walk;
mod window;

pub use kind::{ProgramKind, build_id, kind, kind_of_command, kind_of_opened};
pub use walk::{command, library, program};

#[cfg(doc)]
use crate::Regulator;

/// Bytes at offsets: a file, or in tests a slice.
trait Bytes {
    /// Reads at `offset` until the buffer is full or the file ends; returns how much was read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize;

    /// Exactly `LENGTH` bytes at `offset`, if they are there.
    fn array<const LENGTH: usize>(&self, offset: u64) -> Option<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        (self.read_at(offset, &mut bytes) == LENGTH).then_some(bytes)
    }
}

impl Bytes for discnice_sys::opened::Opened {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        Self::read_at(self, offset, buffer)
    }
}

#[cfg(test)]
impl Bytes for &[u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|from| self.get(from..)).unwrap_or(&[]);
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        length
    }
}

/// The number of `SIZE` bytes at `at` of a record, in the machine's byte order.
fn number<const SIZE: usize>(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..at.saturating_add(SIZE)).unwrap_or(&[]);
    let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    if cfg!(target_endian = "little") {
        bytes.iter().rev().fold(0, append)
    } else {
        bytes.iter().fold(0, append)
    }
}
