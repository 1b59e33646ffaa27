//! Progress bars on the terminal of a command that `run` starts.
//!
//! Another process copies what the command prints, and reads it; this memory is where it says how far the command is.
#![allow(unsafe_code, reason = "memory that is shared with copies of this process")]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use discnice_processes::tree::Tree;
use discnice_sys::block::map_shared;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::control::metric::bar::Bar;
use crate::control::metric::source::Source;

static SHOWN: OnceLock<&'static AtomicU64> = OnceLock::new();

/// Reads what the command prints.
#[derive(Debug)]
pub struct TerminalReader {
    bar: Bar,
    shown: &'static AtomicU64,
}

impl TerminalReader {
    /// Makes the memory in which the metric `terminal` of this process and of its copies finds what is heard.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> io::Result<Self> {
        let file = memfd_create(c"discnice-terminal", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, size_of::<AtomicU64>() as u64)?;
        let start = map_shared(file.as_raw_fd(), size_of::<AtomicU64>())
            .map_err(|error| io::Error::from_raw_os_error(error.0))?;
        // SAFETY: mapped at a page's start, so long, never unmapped, and every bit pattern is valid.
        let shown = unsafe { start.cast::<AtomicU64>().as_ref() };
        Ok(Self { bar: Bar::default(), shown: SHOWN.get_or_init(|| shown) })
    }

    /// Reads what was printed.
    pub fn hear(&mut self, printed: &[u8]) {
        self.bar.feed(printed);
        self.shown.store(self.bar.value().to_bits(), Ordering::Relaxed);
    }
}

/// What was heard.
pub(super) struct Terminal;

impl Source for Terminal {
    //= ms-manners/11-progress-bar
    fn read(&mut self, _: &Tree) -> io::Result<f64> {
        let shown = SHOWN.get().ok_or_else(|| io::Error::other("no terminal is listened to"))?;
        Ok(f64::from_bits(shown.load(Ordering::Relaxed)))
    }
}
