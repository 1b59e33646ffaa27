//! What a watcher outside the processes records about them: which are regulated from outside, how,
//! and why. It lies in the shared block so that the next watcher continues where a killed one
//! stopped.

use crate::member::Member;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// A watcher that has not shown itself for this long, in nanoseconds, is dead or hangs.
const PATIENCE: u64 = 2_000_000_000;

/// In [`Watcher::flags`]: preloaded members are held as soon as they run ahead of their books.
const STRICT: u32 = 1;
/// In [`Watcher::flags`]: the watcher is told of each birth.
const FOLLOWS: u32 = 1 << 1;

//= discnice/5.5-malicious
/// How a process is made to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mechanism {
    /// By our library in it, or not at all.
    None = 0,
    /// By ptrace(2).
    Freeze = 1,
    /// By stop and continue signals.
    Signals = 2,
    /// By the answer to each of its calls (seccomp(2), user notification).
    Seccomp = 3,
}

/// Why a process is regulated from outside, or why it is not although it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// There is nothing to say.
    None = 0,
    /// The user attached it while it ran.
    Attached = 1,
    /// It descends from a process that is regulated from outside.
    Descendant = 2,
    /// It executed a program in which our library never reported.
    NoLibrary = 3,
    /// It forbids itself the system calls that regulating needs.
    Confined = 4,
    /// Its account ran ahead of what it charged itself: page faults, io_uring, raw system calls.
    RanAhead = 5,
    /// A debugger traces it: it is counted, not held.
    Traced = 6,
    /// The system permits neither ptrace(2) nor signals: it is counted, not held.
    Forbidden = 7,
    /// Stopping it would show in its terminal: it is counted, not held.
    Foreground = 8,
    /// Its account is not readable: it is neither counted nor held.
    Hidden = 9,
    /// Its resident memory exceeds what its class may keep while others wait for memory.
    Memory = 10,
    /// The user paused it, or its class.
    Paused = 11,
    /// Each child of it has a class of its own, which only a watcher outside can give it.
    PerChild = 12,
}

impl Reason {
    /// Returns true if a process that is held from outside for this reason has no library of ours in it.
    #[must_use]
    pub const fn is_without_library(self) -> bool {
        matches!(self, Self::Attached | Self::Descendant | Self::NoLibrary | Self::PerChild)
    }
}

impl Mechanism {
    const fn from_claim(value: u32) -> Self {
        match value {
            1 => Self::Freeze,
            2 => Self::Signals,
            3 => Self::Seccomp,
            _ => Self::None,
        }
    }
}

impl Reason {
    const fn from_claim(value: u32) -> Self {
        match value {
            1 => Self::Attached,
            2 => Self::Descendant,
            3 => Self::NoLibrary,
            4 => Self::Confined,
            5 => Self::RanAhead,
            6 => Self::Traced,
            7 => Self::Forbidden,
            8 => Self::Foreground,
            9 => Self::Hidden,
            10 => Self::Memory,
            11 => Self::Paused,
            12 => Self::PerChild,
            _ => Self::None,
        }
    }
}

//= rate-windows/7-binaries
/// The state of a class's watcher. At most one process watches, however many are ready to.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Watcher {
    process: AtomicU32,
    /// [`STRICT`] and [`FOLLOWS`].
    flags: AtomicU32,
    /// When it last showed itself, nanoseconds of `CLOCK_MONOTONIC`.
    seen: AtomicU64,
    /// When one that was asked for is on its way until, nanoseconds of the same clock.
    coming: AtomicU64,
    /// How many became members, or began to execute a program.
    arrivals: AtomicU32,
    /// The process that starts another watcher when this one is killed.
    keeper: AtomicU32,
    /// Bytes that were charged from outside, also for members that have ended, by [`Mechanism`].
    charged: [AtomicU64; 4],
}

impl Watcher {
    /// Notes that a process became a member or is about to execute a program: the watcher looks at
    /// it soon.
    pub fn announce(&self) {
        self.arrivals.fetch_add(1, Ordering::Release);
    }

    /// Changes with each [`Self::announce`].
    #[must_use]
    pub fn arrivals(&self) -> u32 {
        self.arrivals.load(Ordering::Acquire)
    }

    /// Notes bytes charged to the class from outside, for a process that is made to wait by
    /// `mechanism`.
    pub fn note_charged(&self, mechanism: Mechanism, bytes: u64) {
        if let Some(charged) = self.charged.get(mechanism as usize) {
            charged.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes that were charged so are taken back: they never reached a disk.
    pub fn note_credited(&self, mechanism: Mechanism, bytes: u64) {
        if let Some(charged) = self.charged.get(mechanism as usize) {
            let (order, less) = (Ordering::Relaxed, |old: u64| Some(old.saturating_sub(bytes)));
            let _ = charged.fetch_update(order, order, less);
        }
    }

    /// Bytes that were charged so since the class was made. What was charged in no such way the members' own library charged.
    #[must_use]
    pub fn charged(&self, mechanism: Mechanism) -> u64 {
        self.charged.get(mechanism as usize).map_or(0, |charged| charged.load(Ordering::Relaxed))
    }

    /// Bytes that were charged from outside since the class was made for processes that nothing could hold: what escaped the
    /// limits, though it was counted.
    #[must_use]
    pub fn unheld(&self) -> u64 {
        self.charged(Mechanism::None)
    }

    /// A watcher was asked for, and is here by `until` (nanoseconds of `CLOCK_MONOTONIC`) or never.
    pub fn await_until(&self, until: u64) {
        self.coming.store(until, Ordering::Relaxed);
    }

    /// Returns true if a watcher was asked for that may still be on its way.
    #[must_use]
    pub fn is_coming(&self, now: u64) -> bool {
        let until = self.coming.load(Ordering::Relaxed);
        // A moment in the far future was scribbled.
        until > now && until - now < PATIENCE
    }

    /// Becomes the watcher, or goes on being it; false while another one lives.
    pub fn claim(&self, process: u32, now: u64, exists: impl Fn(u32) -> bool) -> bool {
        let owner = self.process.load(Ordering::Acquire);
        if owner != process {
            if owner != 0 && !self.is_stale(now) && exists(owner) {
                return false;
            }
            let taken =
                self.process.compare_exchange(owner, process, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_err() {
                return false;
            }
            self.flags.fetch_and(!FOLLOWS, Ordering::Release);
        }
        self.seen.store(now, Ordering::Relaxed);
        true
    }

    /// Notes which process starts another watcher when this one is killed.
    pub fn set_keeper(&self, process: u32) {
        self.keeper.store(process, Ordering::Relaxed);
    }

    /// The process that starts another watcher when one is killed, if one was watching that has such a keeper.
    #[must_use]
    pub fn keeper(&self) -> Option<u32> {
        Some(self.keeper.load(Ordering::Relaxed)).filter(|keeper| *keeper != 0)
    }

    /// Ends being the watcher.
    pub fn resign(&self, process: u32) {
        let _ = self.process.compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns true if the class has a watcher, or had one when that was killed.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.process.load(Ordering::Relaxed) != 0
    }

    /// The watcher's process id, unless it is dead.
    pub fn process(&self, now: u64, exists: impl Fn(u32) -> bool) -> Option<u32> {
        let owner = self.process.load(Ordering::Acquire);
        (owner != 0 && !self.is_stale(now) && exists(owner)).then_some(owner)
    }

    /// Records if the watcher is told of each fork, and so finds the descendants of known processes
    /// without anything in their environment.
    pub fn follow_births(&self, follows: bool) {
        // Of a thousand classes each page that is written counts.
        if (self.flags.load(Ordering::Relaxed) & FOLLOWS != 0) == follows {
            return;
        }
        if follows {
            self.flags.fetch_or(FOLLOWS, Ordering::Release);
        } else {
            self.flags.fetch_and(!FOLLOWS, Ordering::Release);
        }
    }

    /// Returns true if there is a watcher that is told of each fork.
    pub fn follows_births(&self, now: u64, exists: impl Fn(u32) -> bool) -> bool {
        self.flags.load(Ordering::Acquire) & FOLLOWS != 0 && self.process(now, exists).is_some()
    }

    /// From now on holds members with our library, too, as soon as their account runs ahead of what
    /// they charged themselves. Without that they are left to the library until it is plain that it
    /// does not see what they do.
    pub fn be_strict(&self) {
        self.flags.fetch_or(STRICT, Ordering::Relaxed);
    }

    /// Returns true if members with our library are held as soon as they run ahead.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & STRICT != 0
    }

    fn is_stale(&self, now: u64) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        // A moment in the future was scribbled.
        seen > now || now - seen > PATIENCE
    }
}

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
    pub mechanism: Mechanism,
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
        })
    }

    /// Notes how the process is held and why.
    pub fn set_how(&self, mechanism: Mechanism, reason: Reason) {
        let (relaxed, how) = (Ordering::Relaxed, mechanism as u32 | (reason as u32) << 16);
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

    /// Adds bytes that the process had not charged itself.
    pub fn add_escaped(&self, bytes: u64) {
        self.escaped.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds nanoseconds for which it was held.
    pub fn add_frozen(&self, nanos: u64) {
        self.frozen.fetch_add(nanos, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
