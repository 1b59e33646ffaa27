//! The last calls of a class's members, for `discnice trace`: a ring that members write while something reads it.
//!
//! A place in the ring is taken by one atomic addition. Its turn is stored last and looked at before and after it is
//! read, and a check word covers the rest, as a member that lost the processor for a whole round may write beside
//! another. So a reader never takes a record for whole that is not; one that a killed member left unfinished is
//! skipped. Records that come faster than they are read replace the oldest.

use discnice_units::{Moment, Nanos};

use crate::primitive::{AtomicU64, Ordering};

/// Records in the ring: at a hundred thousand calls a second those of 40 ms.
pub const RECORDS: usize = 4096;
/// Bytes of a call's name that are kept.
pub const NAME_MAX: usize = 16;
/// Words of a record.
const WORDS: usize = 10;

/// Why a call went on when it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Why {
    /// Nothing was decided: the call can cost nothing, or its cost is found by a later look at the account.
    #[default]
    Unexamined = 0,
    /// No limit was in force.
    Unlimited = 1,
    /// It could not reach a disk.
    Elsewhere = 2,
    /// What it reads was expected to be cached.
    Cached = 3,
    /// The pages that it writes were expected to be dirty.
    Dirty = 4,
    /// What it reads had been read ahead, and paid for.
    PaidAhead = 5,
    /// Nothing was owed, and its cost was not known: it is charged afterwards.
    NothingOwed = 6,
    /// What it was predicted to cost was reserved.
    Reserved = 7,
    /// What it reads was read ahead in slices, each of them reserved.
    Slices = 8,
    /// Its thread deletes what it writes.
    Deletes = 9,
    /// It was charged by its process's account, from outside.
    Account = 10,
    /// It took its turn in the class's network traffic.
    Turn = 11,
    /// Its class gives way, and has its least rate.
    Least = 12,
}

impl Why {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Unexamined,
        Self::Unlimited,
        Self::Elsewhere,
        Self::Cached,
        Self::Dirty,
        Self::PaidAhead,
        Self::NothingOwed,
        Self::Reserved,
        Self::Slices,
        Self::Deletes,
        Self::Account,
        Self::Turn,
        Self::Least,
    ];

    fn from_claim(value: u8) -> Self {
        Self::ALL.get(value as usize).copied().unwrap_or_default()
    }
}

/// One call of a member, or one look at the account of a member that is held from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// When it was done, of `CLOCK_MONOTONIC`.
    pub at: Moment,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The name of the call, padded with zeroes.
    pub name: [u8; NAME_MAX],
    /// Its first argument, if that is a number: mostly a descriptor.
    pub first: Option<i32>,
    /// Why it went on when it did.
    pub why: Why,
    /// What it returned, or the bytes that it asked for where that is not seen.
    pub result: i64,
    /// Bytes of traffic that were reserved for it.
    pub predicted: u64,
    /// Bytes of traffic that were charged at its end, on a disk also for calls before it.
    pub charged: u64,
    /// How long it took; zero where that is not seen.
    pub took: Nanos,
    /// How long it was held.
    pub waited: Nanos,
}

/// Returns the beginning of a call's name as a record holds it.
#[must_use]
pub fn name(text: &[u8]) -> [u8; NAME_MAX] {
    let mut name = [0; NAME_MAX];
    name.iter_mut().zip(text).for_each(|(to, byte)| *to = *byte);
    name
}

/// One place of the ring.
#[derive(Debug)]
#[repr(C)]
struct Place {
    /// One more than the number of the record in it; zero while it is written.
    turn: AtomicU64,
    words: [AtomicU64; WORDS],
    check: AtomicU64,
}

/// The ring. All zeroes is an empty one that nothing reads.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Trace {
    /// Until when it is read, of `CLOCK_MONOTONIC`.
    until: AtomicU64,
    /// Records written so far.
    written: AtomicU64,
    places: [Place; RECORDS],
}

/// Relaxed: the turn of a record orders its words.
const R: Ordering = Ordering::Relaxed;

impl Trace {
    /// Says that something reads until this moment.
    pub(crate) fn read_until(&self, moment: Moment) {
        self.until.fetch_max(moment.0, R);
    }

    /// Returns true if something reads at this moment.
    pub(crate) fn is_read(&self, now: Moment) -> bool {
        now.0 < self.until.load(R)
    }

    /// Adds a record.
    pub(crate) fn write(&self, record: &Record) {
        let number = self.written.fetch_add(1, R);
        let Some(place) = self.places.get(number as usize % RECORDS) else { return };
        place.turn.store(0, R);
        core::sync::atomic::fence(Ordering::Release);
        let words = record.to_words();
        place.words.iter().zip(words).for_each(|(to, word)| to.store(word, R));
        place.check.store(check(number, &words), R);
        place.turn.store(number.wrapping_add(1), Ordering::Release);
    }

    /// Returns a reader of what is written from now on.
    pub fn reader(&self) -> Reader<'_> {
        Reader { trace: self, next: self.written.load(R), lost: 0 }
    }

    /// The record of this number, if it is whole and has not been replaced.
    fn get(&self, number: u64) -> Option<Record> {
        let place = self.places.get(number as usize % RECORDS)?;
        let turn = place.turn.load(Ordering::Acquire);
        let word = |index: usize| place.words.get(index).map_or(0, |word| word.load(R));
        let (words, sum) = (core::array::from_fn(word), place.check.load(R));
        core::sync::atomic::fence(Ordering::Acquire);
        let same = turn == number.wrapping_add(1) && place.turn.load(R) == turn;
        (same && sum == check(number, &words)).then(|| Record::from_words(&words))
    }
}

/// Reads a ring from where it was when the reader was made.
#[derive(Debug)]
pub struct Reader<'a> {
    trace: &'a Trace,
    next: u64,
    lost: u64,
}

impl Reader<'_> {
    /// Calls `each` with the records that have come since the last call. One that is being written is left for the
    /// next call if `patient`; else it counts as lost.
    pub fn read(&mut self, patient: bool, mut each: impl FnMut(Record)) {
        let written = self.trace.written.load(Ordering::Acquire);
        let oldest = written.saturating_sub(RECORDS as u64);
        self.lost += oldest.saturating_sub(self.next);
        self.next = self.next.max(oldest);
        while self.next < written {
            match self.trace.get(self.next) {
                Some(record) => each(record),
                None if patient => return,
                None => self.lost += 1,
            }
            self.next += 1;
        }
    }

    /// Records that were replaced before they were read, or that a killed member left unfinished.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Differs for records of which a word differs, and for numbers.
fn check(number: u64, words: &[u64; WORDS]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    words.iter().fold(number, |sum, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29))
}

/// Two numbers of half a word each.
const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl Record {
    fn to_words(self) -> [u64; WORDS] {
        let (head, tail) = self.name.split_at(NAME_MAX / 2);
        let word =
            |half: &[u8]| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (first, has_first) = (self.first.unwrap_or(0), u32::from(self.first.is_some()));
        [
            self.at.0,
            pair(self.process, self.thread),
            word(head),
            word(tail),
            pair(first.cast_unsigned(), has_first << 8 | self.why as u32),
            self.result.cast_unsigned(),
            self.predicted,
            self.charged,
            self.took.0,
            self.waited.0,
        ]
    }

    fn from_words(words: &[u64; WORDS]) -> Self {
        let [at, ids, head, tail, first, result, predicted, charged, took, waited] = *words;
        let mut name = [0; NAME_MAX];
        let bytes = head.to_le_bytes().into_iter().chain(tail.to_le_bytes());
        name.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        Self {
            at: Moment(at),
            process: (ids >> 32) as u32,
            thread: ids as u32,
            name,
            first: (first & 0x100 != 0).then_some((first >> 32) as i32),
            why: Why::from_claim(first as u8),
            result: result.cast_signed(),
            predicted,
            charged,
            took: Nanos(took),
            waited: Nanos(waited),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
