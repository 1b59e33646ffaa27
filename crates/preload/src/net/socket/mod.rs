//! What is known about one socket.

mod registration;
mod turns;

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use discnice_interpose::table::Entry;
use discnice_regulator::Flow;
use discnice_sys::socket;

pub use self::registration::{Changing, Registration};
use crate::net::waits;
use crate::net::waits::Waits;

/// Family and type have been asked for.
const KNOWN: u32 = 1;
/// IPv4 or IPv6.
const INTERNET: u32 = 1 << 1;
/// A stream, not messages.
const STREAM: u32 = 1 << 2;
/// The peer has been asked for, and there is one.
const CONNECTED: u32 = 1 << 3;
/// What it sends stays within the machine: for a connected socket a fact, else what its last
/// message did.
const LOCAL: u32 = 1 << 4;
/// The program waits for it with poll or select.
const POLLED: u32 = 1 << 5;
/// Registered with more than one epoll instance: we cannot tell which reports it.
const MANY: u32 = 1 << 6;
/// The kernel's registration with epoll withholds readiness from what the program registered.
const MASKED: u32 = 1 << 7;

/// Little of what a class that gives way sends waits in its sockets.
const SHORT: u32 = 1 << 8;

/// Its window is ours.
const NARROWED: u32 = 1 << 9;

/// Unsent bytes that may wait in such a socket: 10 ms of a network of 100 Mbit/s, and enough for
/// one that is a hundred times as fast.
const UNSENT: u32 = 128 << 10;

/// So many bytes a second.
const RATE_UNIT: u64 = 1 << 10;
/// A share of a path is never less.
const RATE_LEAST: u64 = 10_000;

/// Hints about one socket; all zeroes means that nothing is known. What concerns epoll is more
/// than a hint, because the program's own data goes back to it: it changes only under `changing`.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Socket {
    flags: AtomicU32,
    /// One while a thread changes the registration below. No thread waits long for it.
    changing: AtomicU32,
    /// The epoll instance plus one; zero for none.
    epoll: AtomicI32,
    events: AtomicU32,
    data: AtomicU64,
    /// One bit for each flow that is parked.
    parked: AtomicU32,
    /// The limits by which it was parked.
    limits: AtomicU32,
    /// Calls since it was parked that came before its turn.
    early: AtomicU32,
    /// The rate that was set for what it sends, in units of [`RATE_UNIT`] and one more; zero for none.
    paced: AtomicU32,
    /// The version of the shares of paths that it follows; zero for none.
    followed: AtomicU32,
    /// What it may send by them, as [`Self::paced`].
    share: AtomicU32,
    /// For each flow, its turn.
    due: [AtomicU64; 2],
    /// For each flow, bytes reserved for that turn.
    granted: [AtomicU64; 2],
}

// SAFETY: made of atomic integers, and zero is what `BLANK` gives each.
unsafe impl Entry for Socket {
    const BLANK: Self = Self {
        flags: AtomicU32::new(0),
        changing: AtomicU32::new(0),
        epoll: AtomicI32::new(0),
        events: AtomicU32::new(0),
        data: AtomicU64::new(0),
        parked: AtomicU32::new(0),
        limits: AtomicU32::new(0),
        early: AtomicU32::new(0),
        paced: AtomicU32::new(0),
        followed: AtomicU32::new(0),
        share: AtomicU32::new(0),
        due: [AtomicU64::new(0), AtomicU64::new(0)],
        granted: [AtomicU64::new(0), AtomicU64::new(0)],
    };
}

/// Relaxed for hints.
const R: Ordering = Ordering::Relaxed;

/// A set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flows(pub u32);

impl Flows {
    /// The set of one.
    pub const fn only(flow: Flow) -> Self {
        Self(1 << flow as u32)
    }

    /// Returns true if `flow` is in the set.
    pub const fn contains(self, flow: Flow) -> bool {
        self.0 & Self::only(flow).0 != 0
    }
}

/// What is charged for traffic of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Set if it never leaves through the internet protocols.
    pub exempt: bool,
    /// Set if it may be cut anywhere.
    pub stream: bool,
    /// Set if it stays within the machine, as far as known.
    pub local: bool,
    /// Set if `local` is a fact, because the socket is connected.
    pub connected: bool,
}

impl Socket {
    fn has(&self, flag: u32) -> bool {
        self.flags.load(R) & flag != 0
    }

    fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, R);
        } else {
            self.flags.fetch_and(!flag, R);
        }
    }

    /// Returns true if there is nothing to forget.
    #[inline]
    pub fn is_blank(&self) -> bool {
        self.flags.load(R) == 0 && self.epoll.load(R) == 0 && !self.is_paced()
    }

    /// Forgets everything.
    pub fn forget(&self) {
        self.flags.store(0, R);
        self.epoll.store(0, R);
        self.parked.store(0, R);
        self.changing.store(0, R);
        self.paced.store(0, R);
        self.forget_share();
    }

    fn forget_share(&self) {
        self.followed.store(0, R);
        self.share.store(0, R);
    }

    /// Forgets what is parked and granted.
    pub fn forget_turns(&self) {
        self.parked.store(0, R);
        self.changing.store(0, R);
        self.set(MASKED, false);
        self.granted.iter().for_each(|granted| granted.store(0, R));
    }

    /// Another peer may be there now.
    pub fn forget_peer(&self) {
        self.set(CONNECTED | LOCAL, false);
        self.forget_share();
    }

    /// What it is, asking the kernel for what is not known yet.
    pub fn kind(&self, fd: i32) -> Option<Kind> {
        if !self.has(KNOWN) {
            let kind = socket::kind(fd).ok()?;
            self.set(INTERNET, kind.internet);
            self.set(STREAM, kind.stream);
            self.set(KNOWN, true);
        }
        if self.has(INTERNET)
            && !self.has(CONNECTED)
            && let Ok(local) = socket::is_local(fd)
        {
            self.set(LOCAL, local);
            self.set(CONNECTED, true);
        }
        let flags = self.flags.load(R);
        Some(Kind {
            exempt: flags & INTERNET == 0,
            stream: flags & STREAM != 0,
            local: flags & LOCAL != 0,
            connected: flags & CONNECTED != 0,
        })
    }

    /// Keeps the send buffer short, once. When the others' traffic comes, the buffered data would
    /// leave before anything that we hold back, and until then it could not be told from theirs.
    pub fn shorten(&self, fd: i32) {
        if !self.has(SHORT) {
            self.set(SHORT, true);
            // What is not TCP has no such queue.
            let _ = socket::limit_unsent(fd, UNSENT);
        }
    }

    /// Returns true if a rate was set for what it sends.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.paced.load(R) != 0
    }

    /// Returns true if this rate was set.
    #[inline]
    pub fn is_paced_at(&self, rate: u64) -> bool {
        self.paced.load(R) == short(rate)
    }

    /// Notes the rate that was set; the largest number for none.
    pub fn note_paced(&self, rate: u64) {
        self.paced.store(short(rate), R);
    }

    /// Returns true if it follows this version of the shares of paths.
    pub fn follows(&self, version: u32) -> bool {
        self.followed.load(R) == version
    }

    /// Notes the version of the shares of paths that it follows.
    pub fn note_followed(&self, version: u32) {
        self.followed.store(version, R);
    }

    /// Bytes a second that it may send by its share of its path; `None` for any.
    pub fn share(&self) -> Option<u64> {
        let units = self.share.load(R).checked_sub(1)?;
        Some((u64::from(units) * RATE_UNIT).max(RATE_LEAST))
    }

    /// Notes what it may send.
    pub fn note_share(&self, rate: Option<u64>) {
        self.share.store(short(rate.unwrap_or(u64::MAX)), R);
    }

    /// Returns true if its window is ours.
    pub fn is_narrowed(&self) -> bool {
        self.has(NARROWED)
    }

    /// Notes if its window is ours.
    pub fn note_narrowed(&self, on: bool) {
        if self.has(NARROWED) != on {
            self.set(NARROWED, on);
        }
    }

    /// Notes if the last message of a socket without a peer stayed within the machine.
    pub fn note_local(&self, local: bool) {
        self.set(LOCAL, local);
    }

    /// The program waits for it with poll or select.
    pub fn note_polled(&self) {
        if !self.has(POLLED) {
            self.set(POLLED, true);
        }
    }

    /// Returns true if we can withhold its readiness and give it later: the program waits for it in
    /// a way that we see, and no other thread is in such a wait already, which nothing of ours
    /// would end.
    pub fn can_be_withheld(&self) -> bool {
        let epoll = self.epoll.load(R);
        let in_epoll = epoll != 0 && waits::is_used() && !self.has(MANY);
        let in_poll = self.has(POLLED);
        (in_epoll || in_poll)
            && !(epoll != 0 && Waits::Epoll(epoll - 1).is_going_on())
            && !(in_poll && Waits::Poll.is_going_on())
    }
}

/// A rate as it is remembered.
const fn short(rate: u64) -> u32 {
    if rate == u64::MAX {
        return 0;
    }
    let units = rate / RATE_UNIT;
    if units >= u32::MAX as u64 { u32::MAX } else { units as u32 + 1 }
}
