//! What of a process's account has been charged.

use crate::primitive::{AtomicU64, Ordering};

/// How much of the account has been charged, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charged {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Charged {
    /// What is new of it since it was `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            read: self.read.saturating_sub(before.read),
            written: self.written.saturating_sub(before.written),
        }
    }

    /// Bytes, both ways.
    #[must_use]
    pub fn total(self) -> u64 {
        self.read.saturating_add(self.written)
    }
}

//= discnice/2.2-disk-io
/// What of a process's account has been charged; lives in the member, or in the process itself
/// when the class has no member free.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Books {
    read: AtomicU64,
    written: AtomicU64,
    /// Page faults that had to read, when last asked.
    faults: AtomicU64,
    waited: AtomicU64,
}

impl Books {
    /// Empty books.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    //= discnice/4.3-rough
    /// Enters the account's present state; returns what of it is new. Of several threads that
    /// enter at once each gets a part, and the parts are the whole.
    pub fn enter(&self, account: Charged) -> Charged {
        Charged {
            read: advance(&self.read, account.read),
            written: advance(&self.written, account.written),
        }
    }

    /// Enters how many page faults of the process had to read so far; returns how many are new.
    pub fn enter_faults(&self, faults: u64) -> u64 {
        advance(&self.faults, faults)
    }

    /// Adds time that the process was held, in nanoseconds.
    pub fn add_wait(&self, nanos: u64) {
        self.waited.fetch_add(nanos, Ordering::Relaxed);
    }

    //= discnice/7-own-account
    /// What has been charged.
    #[must_use]
    pub fn charged(&self) -> Charged {
        Charged {
            read: self.read.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }

    /// Nanoseconds that the process was held.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    pub(super) fn reset(&self, charged: Charged) {
        self.read.store(charged.read, Ordering::Relaxed);
        self.written.store(charged.written, Ordering::Relaxed);
        self.faults.store(0, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
    }
}

/// No account moves so far between two looks, in bytes: 1 TiB. One that did, or that is so far behind what was
/// seen of it, was misread: it counts again from where it is now.
const UNBELIEVABLE: u64 = 1 << 40;

/// Raises `known` to `value` and returns by how much.
fn advance(known: &AtomicU64, value: u64) -> u64 {
    // Relaxed: the read-modify-write alone makes every byte be counted once.
    let before = known.fetch_max(value, Ordering::Relaxed);
    if value.abs_diff(before) < UNBELIEVABLE {
        return value.saturating_sub(before);
    }
    // A lost race means that another process has entered the true value.
    let _ = known.compare_exchange(before, value, Ordering::Relaxed, Ordering::Relaxed);
    0
}
