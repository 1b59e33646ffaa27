//! One process of a class.
//!
//! A member keeps how much of the kernel's account of its process has been charged already, so
//! that every byte is charged exactly once, whichever thread, library instance or program image
//! of that process notices it.

mod books;

pub use books::{Books, Charged};

use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// Bytes kept of a program's name, as in the kernel's `comm`.
pub const NAME: usize = 16;

/// The life of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The slot has no owner.
    Free = 0,
    /// The slot is being filled in.
    Claimed = 1,
    /// A regulated process.
    Active = 2,
    /// The process is executing a new program, which has not reported yet: for a moment normal,
    /// for longer the mark of a program that our library cannot enter (static, setuid).
    Executing = 3,
    /// The process has forbidden itself the system calls that regulating needs.
    Confined = 4,
    /// A supervisor regulates it, call by call: our library cannot enter it, or has not yet.
    Notified = 5,
    /// Regulated from outside: attached while it ran, or born by such a process.
    Outside = 6,
}

impl State {
    fn from_claim(value: u32) -> Self {
        match value {
            1 => Self::Claimed,
            2 => Self::Active,
            3 => Self::Executing,
            4 => Self::Confined,
            5 => Self::Notified,
            6 => Self::Outside,
            _ => Self::Free,
        }
    }
}

/// A member's slot and generation: names one life of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberId {
    /// Position in the class.
    pub index: u32,
    /// Number of the slot's life.
    pub generation: u32,
}

/// One slot.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Member {
    state: AtomicU32,
    generation: AtomicU32,
    process: AtomicU32,
    /// How many of its threads start programs that escape the library.
    bearing: AtomicU32,
    books: Books,
    name: [AtomicU64; NAME / 8],
}

impl Member {
    #[cfg(any(test, loom))]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            process: AtomicU32::new(0),
            bearing: AtomicU32::new(0),
            books: Books::default(),
            name: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// The slot's state.
    #[must_use]
    pub fn state(&self) -> State {
        State::from_claim(self.state.load(Ordering::Acquire))
    }

    /// The process id; zero when the slot is free.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Returns the number of this life of the slot.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// What has been charged.
    #[must_use]
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Takes the slot if it is free, or if its process is gone.
    ///
    /// A claimer that is killed before it finished leaves a slot with a dead process, which the
    /// next one takes: no slot is ever lost.
    pub fn claim(&self, process: u32, charged: Charged, exists: impl Fn(u32) -> bool) -> bool {
        let owner = self.process.load(Ordering::Acquire);
        // A slot with the process's own number was prepared for it by its parent, or is left
        // over from a dead process of the same number.
        if owner != 0 && owner != process && exists(owner) {
            return false;
        }
        // The process id is the lock: the process that stores it by this exchange owns the slot,
        // and if it dies, the slot is recognised by it as free.
        let taken =
            self.process.compare_exchange(owner, process, Ordering::AcqRel, Ordering::Acquire);
        // Its parent may have listed it just now ([`Self::expect`]).
        if taken.is_err_and(|owner| owner != process) {
            return false;
        }
        // What a supervisor has charged while the process was being loaded stays charged.
        let known = owner == process && self.state() == State::Notified;
        // By exchanges, which no step of `expect` can come between.
        self.state.swap(State::Claimed as u32, Ordering::AcqRel);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.bearing.store(0, Ordering::Relaxed);
        if !known {
            self.books.reset(charged);
        }
        self.state.swap(State::Active as u32, Ordering::AcqRel);
        true
    }

    /// Takes the slot for a process that is executing a program, if it is free, or if its process is gone; returns true if
    /// the slot is that process's now.
    ///
    /// The process may find the slot as its own at once, and register in it: then that stands.
    pub fn expect(&self, process: u32, exists: impl Fn(u32) -> bool) -> bool {
        let (owner, before) =
            (self.process.load(Ordering::Acquire), self.state.load(Ordering::Relaxed));
        let generation = self.generation();
        if owner == process || owner != 0 && exists(owner) {
            return false;
        }
        let (won, lost) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.process.compare_exchange(owner, process, won, lost).is_err() {
            return false;
        }
        let (next, executing) = (generation.wrapping_add(1), State::Executing as u32);
        if self.generation.compare_exchange(generation, next, won, lost).is_ok()
            && self.state.compare_exchange(before, executing, won, lost).is_ok()
        {
            self.bearing.store(0, Ordering::Relaxed);
            self.books.reset(Charged::default());
        }
        true
    }

    /// Notes that a thread of the process starts a program that no library of ours gets into: its children are the
    /// watcher's to find until [`Self::end_bearing`].
    pub fn begin_bearing(&self) {
        self.bearing.fetch_add(1, Ordering::Release);
    }

    /// Ends what [`Self::begin_bearing`] began.
    pub fn end_bearing(&self) {
        let fewer = |threads: u32| threads.checked_sub(1);
        let _ = self.bearing.fetch_update(Ordering::Release, Ordering::Relaxed, fewer);
    }

    /// Returns true between [`Self::begin_bearing`] and [`Self::end_bearing`].
    #[must_use]
    pub fn is_bearing(&self) -> bool {
        self.bearing.load(Ordering::Acquire) > 0
    }

    /// Marks what the process is doing.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Release);
    }

    /// Gives the slot back.
    pub fn release(&self) {
        self.state.store(State::Free as u32, Ordering::Relaxed);
        self.process.store(0, Ordering::Release);
    }

    /// Notes the program's name, cut to [`NAME`] bytes.
    pub fn set_name(&self, name: &[u8]) {
        let mut bytes = [0; NAME];
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
        }
        for (word, chunk) in self.name.iter().zip(bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
    }

    /// The program's name, padded with zeroes.
    #[must_use]
    pub fn name(&self) -> [u8; NAME] {
        let mut bytes = [0; NAME];
        for (word, chunk) in self.name.iter().zip(bytes.chunks_exact_mut(8)) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
