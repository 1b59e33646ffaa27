//! What is known of one member from outside.

use discnice_units::Bytes;

use super::reason::{Mechanism, Reason};
use crate::member::{Charged, Member};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// What is known of one member from outside; belongs to the life of its slot that `generation` names.
#[derive(Debug)]
#[repr(C)]
pub struct Held {
    generation: AtomicU32,
    /// Mechanism in the low half, with [`PAUSED`], reason in the high half.
    how: AtomicU32,
    /// When the process started, in clock ticks since boot: tells it from a later one of its number.
    started: AtomicU64,
    escaped: AtomicU64,
    frozen: AtomicU64,
    /// Processor time in nanoseconds that the process had had when it was looked at; zero before.
    ran: AtomicU64,
    /// What it had moved then.
    seen: AtomicU64,
    /// Bytes that it had read before it became a member.
    read_before: AtomicU64,
    /// Bytes that it had written before.
    written_before: AtomicU64,
}

/// In [`Account::started`]: the process is listed by the number that a PID namespace of its own gives it, by which others may
/// know another process.
pub const APART: u64 = 1 << 63;

/// In [`Held::how`]: the user has paused the process.
const PAUSED: u32 = 1 << 15;

/// A copy of [`Held`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// How the process is made to wait.
    pub mechanism: Option<Mechanism>,
    /// Why it is regulated from outside.
    pub reason: Reason,
    /// Set if the user has paused the process itself.
    pub paused: bool,
    /// When it started, in clock ticks since boot; with [`APART`].
    pub started: u64,
    /// Bytes that it had not charged itself: found and charged from outside.
    pub escaped: u64,
    /// Nanoseconds for which it was held from outside.
    pub frozen: u64,
    /// What it had moved, both ways, when it was looked at last.
    pub seen: Option<Seen>,
    /// What it had moved before it became a member: no part of the class's.
    pub before: Charged,
}

/// What a process had moved, both ways, as the kernel says or as it said itself, when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Processor time in nanoseconds that the process had had then: while it has not had more, it exists, and
    /// has moved no more.
    pub ran: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Account {
    /// Returns true if its process id is valid only in a PID namespace of its own.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.started & APART != 0
    }
}

impl Held {
    /// Begins anew for the life of `member`'s slot, unless this life has begun already.
    pub fn begin(&self, member: &Member, started: u64) {
        let known = self.of(member).is_some_and(|account| account.started == started);
        if !known {
            self.how.store(0, Ordering::Relaxed);
            self.started.store(started, Ordering::Relaxed);
            self.escaped.store(0, Ordering::Relaxed);
            self.frozen.store(0, Ordering::Relaxed);
            self.ran.store(0, Ordering::Relaxed);
            self.read_before.store(0, Ordering::Relaxed);
            self.written_before.store(0, Ordering::Relaxed);
            self.generation.store(member.generation(), Ordering::Release);
        }
    }

    /// What is known of `member`, if anything is.
    #[must_use]
    pub fn of(&self, member: &Member) -> Option<Account> {
        if self.generation.load(Ordering::Acquire) != member.generation() {
            return None;
        }
        let how = self.how.load(Ordering::Relaxed);
        // The processor time first: bytes that were stored after it were seen when the process had had more.
        let ran = self.ran.load(Ordering::Acquire);
        let bytes = self.seen.load(Ordering::Relaxed);
        Some(Account {
            mechanism: Mechanism::from_claim(how & 0xffff & !PAUSED),
            reason: Reason::from_claim(how >> 16),
            paused: how & PAUSED != 0,
            started: self.started.load(Ordering::Relaxed),
            escaped: self.escaped.load(Ordering::Relaxed),
            frozen: self.frozen.load(Ordering::Relaxed),
            seen: (ran > 0).then_some(Seen { ran, bytes }),
            before: Charged {
                read: self.read_before.load(Ordering::Relaxed),
                written: self.written_before.load(Ordering::Relaxed),
            },
        })
    }

    /// Notes how the process is held and why.
    pub fn set_how(&self, mechanism: Option<Mechanism>, reason: Reason) {
        let mechanism = mechanism.map_or(0, |mechanism| mechanism as u32);
        let (relaxed, how) = (Ordering::Relaxed, mechanism | (reason as u32) << 16);
        // The closure always gives a value.
        let _ = self.how.fetch_update(relaxed, relaxed, |before| Some(before & PAUSED | how));
    }

    /// Says that `member` stands still, or goes on; false if a watcher has not begun with this life of its slot. The caller
    /// then has the watcher look.
    #[must_use]
    pub fn set_paused(&self, member: &Member, paused: bool) -> bool {
        if self.generation.load(Ordering::Acquire) != member.generation() {
            return false;
        }
        if paused {
            self.how.fetch_or(PAUSED, Ordering::Relaxed);
        } else {
            self.how.fetch_and(!PAUSED, Ordering::Relaxed);
        }
        true
    }

    /// Notes what the process had moved when it had had so many nanoseconds of processor time.
    pub fn set_seen(&self, ran: u64, bytes: u64) {
        self.seen.store(bytes, Ordering::Relaxed);
        self.ran.store(ran, Ordering::Release);
    }

    /// Notes what the process had moved before it became a member.
    pub fn set_before(&self, before: Charged) {
        self.read_before.store(before.read, Ordering::Relaxed);
        self.written_before.store(before.written, Ordering::Relaxed);
    }

    /// Adds bytes that the process had not charged itself.
    pub fn add_escaped(&self, bytes: Bytes) {
        self.escaped.fetch_add(bytes.get(), Ordering::Relaxed);
    }

    /// Adds nanoseconds for which it was held.
    pub fn add_frozen(&self, nanos: u64) {
        self.frozen.fetch_add(nanos, Ordering::Relaxed);
    }
}
