//! The shared table, version 3. All fields have a fixed width; offsets are asserted below.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use discnice_units::Moment;

use crate::model::superintendent::{DeclaredResources, State, Thread};

/// Threads that can take part at once; more go unarbitrated.
pub const SEATS: usize = 256;
/// First word of the file that leads to the table: "dnseats" and the version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"dnseats\x03");

pub const AWAY: u32 = 0;
pub const WAITING: u32 = 1;
pub const RUNNING: u32 = 2;

/// The whole segment.
#[repr(C)]
pub struct Table {
    /// Also in the file: tells this table from others.
    pub magic: AtomicU64,
    /// When the usages were last decayed, in nanoseconds of `CLOCK_MONOTONIC`.
    pub decayed_at: AtomicU64,
    /// What all polite jobs together have used: processor nanoseconds, bytes read, bytes dirtied.
    /// Each process adds what it used since it last did, so a death takes nothing away.
    pub polite: [AtomicU64; 3],
    /// When a waiter last looked for the dead and the hung, in nanoseconds of `CLOCK_MONOTONIC`.
    pub looked_at: AtomicU64,
    /// One more than the highest seat ever taken: where a search may stop.
    pub high_water: AtomicU32,
    reserved: [u32; 3],
    pub seats: [Entry; SEATS],
}

/// One thread. Free while `pid` is zero, so `pid` is written last.
#[repr(C)]
pub struct Entry {
    pub pid: AtomicU32,
    /// [`AWAY`], [`WAITING`] or [`RUNNING`]; the word that a waiter sleeps on.
    pub state: AtomicU32,
    /// Start time of the process, from `/proc/PID/stat`: tells a PID from its reuse.
    pub started: AtomicU64,
    /// Since when in this state.
    pub since: AtomicU64,
    /// Bits of an `f64`: decayed seconds of permission.
    pub usage: AtomicU64,
    /// Bits of an `f64`: priority.
    pub weight: AtomicU64,
    pub resources: AtomicU64,
    reserved: [u64; 2],
}

const _: () = {
    assert!(size_of::<Entry>() == 64);
    assert!(std::mem::offset_of!(Table, seats) == 64);
    assert!(size_of::<Table>() == 64 + 64 * SEATS);
};

impl Entry {
    /// The seat as the superintendent sees it. Values that make no sense (a stray write) are
    /// replaced by harmless ones.
    pub fn read(&self) -> Thread {
        let since = Moment(self.since.load(Ordering::Relaxed));
        let state = match (self.pid.load(Ordering::Acquire), self.state.load(Ordering::Acquire)) {
            (0, _) => State::Away,
            (_, WAITING) => State::Waiting(since),
            (_, RUNNING) => State::Running(since),
            _ => State::Away,
        };
        let sane = |bits: &AtomicU64, least: f64| {
            let value = f64::from_bits(bits.load(Ordering::Relaxed));
            if value.is_finite() { value.max(least) } else { least }
        };
        Thread {
            state,
            weight: sane(&self.weight, 1.0),
            usage: sane(&self.usage, 0.0),
            resources: DeclaredResources(self.resources.load(Ordering::Relaxed)),
        }
    }
}

/// Stores a float.
pub fn store(word: &AtomicU64, value: f64) {
    word.store(value.to_bits(), Ordering::Relaxed);
}
