//! Which of the exact means tells the truth about a descriptor.

use crate::pagecache::{Errno, cachestat, mincore, mincore_is_honest, page_size};

/// How a residency was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Means {
    /// cachestat(2).
    Cachestat,
    /// mincore(2), where it is honest.
    Mincore,
    /// Timed reads of a byte per prediction unit.
    Probe,
    /// Not found out: no exact means, and too small to probe.
    Unknown,
}

impl Means {
    /// The name that machine output uses; stable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cachestat => "cachestat",
            Self::Mincore => "mincore",
            Self::Probe => "probe",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known about cachestat on this descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// cachestat has counted a page, so it asks the inode that has the pages.
    Proven,
    /// cachestat has only ever returned 0, which it also does when it asks the wrong inode.
    Unproven,
    /// cachestat refuses, or returned 0 where mincore saw pages.
    Useless,
}

/// Bytes at the start of a file that are asked about to see whether cachestat answers.
const FIRST_LOOK: u64 = 64 << 10;

/// Answers how much of a range is cached, by the best means that is honest for this descriptor.
///
/// The kernel checks the same permission for cachestat and for mincore, so that a cachestat that
/// answers also vouches for mincore.
#[derive(Debug, Clone, Copy)]
pub struct Oracle {
    fd: i32,
    standing: Standing,
    mincore: bool,
}

impl Oracle {
    /// Examines the descriptor, which must stay open as long as the oracle is used.
    #[must_use]
    pub fn of(fd: i32) -> Self {
        // A small range, as counting a large file takes as long as its pages are many.
        match cachestat(fd, 0, FIRST_LOOK) {
            Ok(counts) if counts.cached > 0 => {
                Self { fd, standing: Standing::Proven, mincore: true }
            }
            Ok(_) => Self { fd, standing: Standing::Unproven, mincore: true },
            Err(Errno(libc::EPERM)) => Self { fd, standing: Standing::Useless, mincore: false },
            Err(_) => Self { fd, standing: Standing::Useless, mincore: mincore_is_honest(fd) },
        }
    }

    /// Returns true if an exact means exists; without one, [`crate::pagecache::probe()`] is left.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.mincore || matches!(self.standing, Standing::Proven)
    }

    /// Pages of `offset .. offset + length` that are cached, and how that is known; `None`
    /// without an exact means.
    pub fn cached_pages(&mut self, offset: u64, length: u64) -> Option<(u64, Means)> {
        if self.standing != Standing::Useless
            && let Ok(counts) = cachestat(self.fd, offset, length)
            && (counts.cached > 0 || self.standing == Standing::Proven)
        {
            self.standing = Standing::Proven;
            let pages = length.div_ceil(page_size()) + 1;
            return Some((counts.cached.min(pages), Means::Cachestat));
        }
        if !self.mincore {
            return None;
        }
        let mut cached = 0;
        mincore(self.fd, offset, length, |_, resident| cached += u64::from(resident)).ok()?;
        if self.standing == Standing::Unproven {
            if cached == 0 {
                return Some((0, Means::Cachestat));
            }
            self.standing = Standing::Useless;
        }
        Some((cached, Means::Mincore))
    }
}
