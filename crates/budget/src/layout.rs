//! The block, field by field.
//!
//! Every field is of fixed width and atomic, so that the block means the same to every program
//! that maps it; a change of the layout changes [`VERSION`], and a library never touches a block
//! of another version.
//!
//! # Safety
//! [`Class::adopt`] turns raw memory into a `&Class`. That is sound for any content: every field
//! is an atomic integer, for which every bit pattern is valid.
#![allow(unsafe_code, reason = "one cast from raw memory, argued at `Class::adopt`")]

use core::fmt;
use core::ptr::NonNull;

use discnice_policy::{Limits, Rule, pace};
use discnice_units::{Nanos, Rate};

use crate::member::{Charged, Member, MemberId, State};
use crate::meter::Meter;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// "DiscNice" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"DiscNice");
/// Of the layout.
const VERSION: u32 = 1;
/// Processes that one class can name; more are regulated but not listed.
pub const MEMBERS: usize = 16_384;
/// Longest name of a class, in bytes.
pub const NAME_MAX: usize = 255;
/// Slots that a registration looks at.
const PROBES: usize = 64;

/// Which way bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a disk.
    Read,
    /// To a disk.
    Write,
}

/// What the block begins with.
#[derive(Debug)]
#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    nonce: AtomicU64,
    version: AtomicU32,
    /// One when any threshold is set: the first thing that a call looks at.
    limited: AtomicU32,
    /// Counts changes of the limits; everybody who waits does so on this word.
    changes: AtomicU32,
    unlisted: AtomicU32,
    window: AtomicU64,
    waits: AtomicU64,
    waited: AtomicU64,
    /// Seconds since 1970.
    created: AtomicU64,
    /// Since when nobody has been seen to use the class, seconds since 1970; zero while in use.
    idle_since: AtomicU64,
    name: [AtomicU64; NAME_MAX.div_ceil(8)],
}

/// A class: thresholds, charges and members.
#[derive(Debug)]
#[repr(C)]
pub struct Class {
    header: Header,
    total: Meter,
    read: Meter,
    write: Meter,
    operations: Meter,
    members: [Member; MEMBERS],
}

/// Why a block is not a class of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// Shorter than a class.
    Truncated,
    /// Something else.
    NotAClass,
    /// Of another version of DiscNice.
    OtherVersion(u32),
    /// Another class that got the same address by chance.
    OtherClass,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("shorter than a class"),
            Self::NotAClass => f.write_str("not a class"),
            Self::OtherVersion(version) => write!(f, "made by layout version {version}"),
            Self::OtherClass => f.write_str("another class"),
        }
    }
}

impl Class {
    /// Bytes of the block.
    pub const SIZE: usize = size_of::<Self>();

    /// Looks at `length` bytes of shared memory as a class, and accepts it if it is ours.
    ///
    /// # Errors
    /// Why it is not.
    ///
    /// # Safety
    /// `start` points to `length` readable and writable bytes, aligned to a page, which stay
    /// mapped as long as the reference lives.
    pub unsafe fn adopt<'a>(
        start: NonNull<u8>,
        length: usize,
        nonce: Option<u64>,
    ) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: long enough, aligned, mapped (the caller), and every bit pattern is valid.
        let class: &Self = unsafe { start.cast().as_ref() };
        let header = &class.header;
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(Foreign::NotAClass);
        }
        match header.version.load(Ordering::Relaxed) {
            VERSION => {}
            other => return Err(Foreign::OtherVersion(other)),
        }
        match nonce {
            Some(nonce) if nonce != class.nonce() => Err(Foreign::OtherClass),
            _ => Ok(class),
        }
    }

    /// Makes a class of fresh zeroed shared memory.
    ///
    /// # Errors
    /// The memory is too short.
    ///
    /// # Safety
    /// As [`Class::adopt`], and nobody else uses the memory yet.
    pub unsafe fn create<'a>(
        start: NonNull<u8>,
        length: usize,
        nonce: u64,
        name: &[u8],
        created: u64,
    ) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: as in `adopt`.
        let class: &Self = unsafe { start.cast().as_ref() };
        let header = &class.header;
        header.nonce.store(nonce, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.created.store(created, Ordering::Relaxed);
        header.window.store(pace::WINDOW.0, Ordering::Relaxed);
        for (word, chunk) in header.name.iter().zip(name.chunks(8)) {
            let mut eight = [0; 8];
            eight.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        for meter in class.meters() {
            meter.set_rate(pace::WINDOW, Nanos(0), Rate::UNLIMITED);
        }
        // Last: whoever sees the magic sees a whole class.
        header.magic.store(MAGIC, Ordering::Release);
        Ok(class)
    }

    fn meters(&self) -> [&Meter; 4] {
        [&self.total, &self.read, &self.write, &self.operations]
    }

    /// Tells this class from another one that gets the same segment number later.
    #[must_use]
    pub fn nonce(&self) -> u64 {
        self.header.nonce.load(Ordering::Relaxed)
    }

    /// The name, padded with zeroes.
    #[must_use]
    pub fn name(&self) -> [u8; NAME_MAX] {
        let mut name = [0; NAME_MAX];
        for (chunk, word) in name.chunks_mut(8).zip(&self.header.name) {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        name
    }

    /// When it was made, seconds since 1970.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.header.created.load(Ordering::Relaxed)
    }

    /// Bytes, both ways.
    #[must_use]
    pub fn total(&self) -> &Meter {
        &self.total
    }

    /// Bytes one way.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &Meter {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// Operations.
    #[must_use]
    pub fn operations(&self) -> &Meter {
        &self.operations
    }

    /// Notes that nobody uses the class since `moment` at the latest; returns since when that is
    /// known. A class that was made for one job is never used again.
    pub fn idle_since(&self, moment: u64) -> u64 {
        let known = self.header.idle_since.compare_exchange(
            0,
            moment,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        known.err().unwrap_or(moment)
    }

    /// The rate window's length; a claim outside of what can be set counts as the default.
    #[must_use]
    pub fn window(&self) -> Nanos {
        match self.header.window.load(Ordering::Relaxed) {
            window @ 100_000_000..=60_000_000_000 => Nanos(window),
            _ => pace::WINDOW,
        }
    }

    /// The thresholds.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            total: self.total.rate(),
            read: self.read.rate(),
            write: self.write.rate(),
            operations: self.operations.rate(),
        }
    }

    /// Changes thresholds and window; the caller then wakes who waits on [`Class::changes`].
    pub fn set_limits(&self, now: Nanos, limits: &Limits, window: Nanos) {
        self.header.window.store(window.0, Ordering::Relaxed);
        let rates = [limits.total, limits.read, limits.write, limits.operations];
        for (meter, rate) in self.meters().into_iter().zip(rates) {
            meter.set_rate(window, now, rate);
        }
        let limited = u32::from(*limits != Limits::UNLIMITED);
        self.header.limited.store(limited, Ordering::Release);
        self.header.changes.fetch_add(1, Ordering::Release);
    }

    /// Whether any threshold is set.
    #[inline]
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) != 0
    }

    /// Whether nothing is owed: then a call that costs the disk nothing need not look further.
    #[inline]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.meters().into_iter().all(|meter| meter.frontier().0 == 0)
    }

    /// The word that changes with the limits.
    #[must_use]
    pub fn changes(&self) -> &AtomicU32 {
        &self.header.changes
    }

    /// Adds one wait of a member.
    pub fn note_wait(&self, time: Nanos) {
        self.header.waits.fetch_add(1, Ordering::Relaxed);
        self.header.waited.fetch_add(time.0, Ordering::Relaxed);
    }

    /// How often and how long members were held.
    #[must_use]
    pub fn waits(&self) -> (u64, Nanos) {
        let header = &self.header;
        (header.waits.load(Ordering::Relaxed), Nanos(header.waited.load(Ordering::Relaxed)))
    }

    /// Processes that found no free member slot.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.header.unlisted.load(Ordering::Relaxed)
    }

    /// The rule that the largest piece of work in this direction follows.
    #[must_use]
    pub fn rule(&self, direction: Direction) -> Rule {
        let rate = self.total.rate().min(self.direction(direction).rate());
        Rule { rate, window: self.window() }
    }

    /// The members' slots.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// One life of a slot, if it still is that process's.
    #[must_use]
    pub fn member(&self, id: MemberId, process: u32) -> Option<&Member> {
        let member = self.members.get(id.index as usize)?;
        (member.generation() == id.generation && member.process() == process).then_some(member)
    }

    /// Registers a process whose account up to `charged` is somebody else's business.
    ///
    /// `None` when the slots around its own are taken: the process is regulated all the same,
    /// and counted in [`Class::unlisted`].
    pub fn register(
        &self,
        process: u32,
        charged: Charged,
        exists: impl Fn(u32) -> bool,
    ) -> Option<(MemberId, &Member)> {
        for (index, member) in self.slots(process) {
            if member.claim(process, charged, &exists) {
                return Some((MemberId { index, generation: member.generation() }, member));
            }
        }
        self.header.unlisted.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Lists a process that was just started and executes a program, unless it has registered
    /// already: one that our library cannot enter never will.
    pub fn expect(&self, process: u32, exists: impl Fn(u32) -> bool) {
        if self.slots(process).any(|(_, member)| member.process() == process) {
            return;
        }
        let mut slots = self.slots(process);
        if let Some((_, member)) =
            slots.find(|(_, member)| member.claim(process, Charged::default(), &exists))
        {
            member.set_state(State::Executing);
        }
    }

    /// The slots in which a process may be listed, in order. Neighbouring process ids start far
    /// apart, so that short-lived crowds do not collide.
    fn slots(&self, process: u32) -> impl Iterator<Item = (u32, &Member)> {
        let first = (process as usize).wrapping_mul(31);
        (0..PROBES).filter_map(move |probe| {
            let index = first.wrapping_add(probe) % MEMBERS;
            Some((index as u32, self.members.get(index)?))
        })
    }

    /// Members whose process is alive, with a state that says what they do.
    pub fn living(&self, exists: impl Fn(u32) -> bool) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| {
            let process = member.process();
            process != 0 && member.state() != State::Free && exists(process)
        })
    }
}

const _: () = {
    assert!(core::mem::offset_of!(Class, total) == 384);
    assert!(size_of::<Meter>() == 832);
    assert!(size_of::<Member>() == 64);
    assert!(Class::SIZE == 384 + 4 * 832 + MEMBERS * 64);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};

    fn memory() -> NonNull<u8> {
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(Class::SIZE, 4096).unwrap()) })
            .unwrap()
    }

    fn class() -> &'static Class {
        // SAFETY: fresh memory of the right size that is never freed.
        unsafe { Class::create(memory(), Class::SIZE, 42, b"tests", 1) }.unwrap()
    }

    #[test]
    fn only_our_own_block_is_adopted() {
        let start = memory();
        // SAFETY: the memory is as long as said and never freed, in all of these.
        unsafe {
            assert_eq!(Class::adopt(start, 100, None).err(), Some(Foreign::Truncated));
            assert_eq!(Class::adopt(start, Class::SIZE, None).err(), Some(Foreign::NotAClass));
            let class = Class::create(start, Class::SIZE, 42, b"tests", 1).unwrap();
            assert!(Class::adopt(start, Class::SIZE, Some(42)).is_ok());
            let other = Class::adopt(start, Class::SIZE, Some(43));
            assert_eq!(other.err(), Some(Foreign::OtherClass));
            class.header.version.store(VERSION + 1, Ordering::Relaxed);
            let newer = Class::adopt(start, Class::SIZE, Some(42));
            assert_eq!(newer.err(), Some(Foreign::OtherVersion(VERSION + 1)));
        }
    }

    #[test]
    fn limits_and_names_are_kept() {
        let class = class();
        assert!(!class.is_limited());
        let limits = Limits { read: Rate::per_second(7), ..Limits::UNLIMITED };
        class.set_limits(Nanos(5), &limits, Nanos::SECOND);
        assert_eq!(class.limits(), limits);
        assert!(class.is_limited());
        assert_eq!(class.window(), Nanos::SECOND);
        assert!(class.name().starts_with(b"tests\0"));
    }

    #[test]
    fn members_come_and_go() {
        let class = class();
        let (id, member) = class.register(100, Charged::default(), |_| true).unwrap();
        assert_eq!(class.member(id, 100).map(Member::process), Some(100));
        assert!(class.member(id, 101).is_none());
        assert_eq!(class.living(|_| true).count(), 1);
        assert_eq!(class.living(|_| false).count(), 0);
        member.release();
        assert!(class.member(id, 100).is_none());
        assert!(class.member(MemberId { index: u32::MAX, generation: 0 }, 100).is_none());
    }

    #[test]
    fn a_full_neighbourhood_is_counted() {
        let class = class();
        // Process ids that differ by the number of slots start at the same one.
        let process = |n: usize| 100 + (n * MEMBERS) as u32;
        for n in 0..PROBES {
            assert!(class.register(process(n), Charged::default(), |_| true).is_some());
        }
        assert!(class.register(process(PROBES), Charged::default(), |_| true).is_none());
        assert_eq!(class.unlisted(), 1);
        let dead = class.register(process(PROBES), Charged::default(), |_| false);
        assert!(dead.is_some(), "all are dead");
    }

    #[test]
    fn an_expected_process_is_listed_once() {
        let class = class();
        class.expect(100, |_| true);
        class.expect(100, |_| true);
        let states: Vec<State> = class.living(|_| true).map(Member::state).collect();
        assert_eq!(states, [State::Executing]);
        let (_, member) = class.register(100, Charged::default(), |_| true).unwrap();
        assert_eq!(member.state(), State::Active);
        class.expect(100, |_| true);
        assert_eq!(class.living(|_| true).count(), 1);
        assert_eq!(member.state(), State::Active, "it has registered already");
    }
}
