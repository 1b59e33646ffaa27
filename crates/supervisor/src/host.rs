//! The mechanism outside a program: its thread waits for our answer while we wait for its turn.

use std::cell::Cell;

use discnice_estimator::{Counts, Probed, Refusal, System};
use discnice_ledger::Class;
use discnice_ledger::member::Charged;
use discnice_ledger::passed::Decider;
use discnice_ledger::primitive::AtomicU32;
use discnice_regulator::{
    Advice, DiskTraffic, FileStatus, Host, Linux, NetworkTraffic, Regulator, Woken, WriteMode,
};
use discnice_sys::{futex, seccomp, time};
use discnice_units::{Moment, Nanos};

use crate::lead::may_take_long;
use crate::proc::{self, Account, Look};
use crate::process::Process;

/// How often to look whether a thread that is held was killed, or must mind a signal.
const LOOK: Nanos = Nanos::from_millis(50);
/// One thread is let go early at most so often, so that no stream of signals frees it of limits.
const BETWEEN_RELEASES: Nanos = Nanos::SECOND;

/// What is known of a thread's account.
#[derive(Debug, Default)]
pub struct Accounted {
    /// Account to look at; none where the kernel does not let us.
    pub account: Option<Account>,
    /// What was seen last.
    pub last: Cell<Look>,
    /// When the thread was last let go early.
    pub released: Cell<Moment>,
}

/// One call of a thread. Descriptors are numbers of ours: see [`proc::borrow`].
#[derive(Debug)]
pub struct Target<'a> {
    /// Process that makes the call.
    pub process: &'a Process,
    /// The thread.
    pub thread: u32,
    /// Its account.
    pub accounted: &'a Accounted,
    /// Where to ask whether it still waits; none where it does not matter.
    pub waiting: Option<(i32, u64)>,
    /// Set when the call must not be held any longer.
    pub abandoned: Cell<bool>,
    /// Bytes that we have read ahead for it during this call.
    pub ahead: Cell<u64>,
    /// Where to sum up how long it is held.
    pub held: &'a Cell<u64>,
}

impl<'a> Target<'a> {
    /// A thread of a process that does not wait for us.
    pub fn new(
        process: &'a Process,
        thread: u32,
        accounted: &'a Accounted,
        held: &'a Cell<u64>,
    ) -> Self {
        let (abandoned, ahead) = (Cell::new(false), Cell::new(0));
        Self { process, thread, accounted, waiting: None, abandoned, ahead, held }
    }

    /// The regulator of the call, of a class that a new program may have changed.
    pub fn regulator(&'a self, class: &'a Class) -> Regulator<'a, Self> {
        let regulator = Regulator::new(self, class, self.process.books());
        regulator.with_board(self.process.board).with_held(self.held)
    }
}

impl Target<'_> {
    /// Reads for the thread, which is charged for it: the kernel charges us.
    fn reading_for_it<T>(&self, read: impl FnOnce() -> T) -> T {
        may_take_long();
        let before = Linux.read_by_thread();
        let done = read();
        let bytes = Linux.read_by_thread().saturating_sub(before);
        self.ahead.set(self.ahead.get() + bytes);
        self.process.add(Charged { read: bytes, written: 0 });
        done
    }

    /// Looks whether the thread was killed, or has a signal to mind.
    fn is_to_go_on(&self, now: Moment) -> bool {
        let Some((listener, id)) = self.waiting else { return false };
        if !seccomp::is_waiting(listener, id) {
            return true;
        }
        let released = &self.accounted.released;
        if now.since(released.get()) < BETWEEN_RELEASES || !has_signal(self.thread) {
            return false;
        }
        released.set(now);
        true
    }
}

impl Host for Target<'_> {
    const BY: Decider = Decider::Filter;

    fn now(&self) -> Moment {
        time::now()
    }

    fn account(&self) -> Charged {
        let before = self.accounted.last.get();
        let look = self.accounted.account.as_ref().and_then(|account| account.look().ok());
        let look = look.unwrap_or(before);
        self.accounted.last.set(look);
        // Another task that got the thread's number by exec(2) has an account of its own.
        self.process.add(Charged {
            read: look.charged.read.saturating_sub(before.charged.read),
            written: look.charged.written.saturating_sub(before.charged.written),
        })
    }

    fn read_by_thread(&self) -> u64 {
        self.ahead.get()
    }

    fn cancelled(&self) -> Option<u64> {
        Some(self.accounted.account.as_ref()?.look().ok()?.cancelled)
    }

    fn wait(&self, word: &AtomicU32, seen: u32, until: Moment) -> Woken {
        may_take_long();
        while !self.abandoned.get() {
            let now = time::now();
            match futex::wait(word, seen, until.min(now.plus(LOOK))) {
                futex::WaitOutcome::Due => {}
                futex::WaitOutcome::Changed => return Woken::Changed,
                futex::WaitOutcome::Interrupted => return Woken::Interrupted,
            }
            let now = time::now();
            if now >= until {
                return Woken::Due;
            }
            self.abandoned.set(self.is_to_go_on(now));
        }
        Woken::Abandoned
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }

    fn status(&self, fd: i32) -> Option<FileStatus> {
        Linux.status(fd)
    }

    fn position(&self, fd: i32) -> Option<u64> {
        Linux.position(fd)
    }

    fn write_mode(&self, fd: i32) -> Option<WriteMode> {
        Linux.write_mode(fd)
    }

    fn can_write(&self, fd: i32) -> bool {
        Linux.can_write(fd)
    }

    fn is_in_memory(&self, fd: i32) -> bool {
        Linux.is_in_memory(fd)
    }

    fn read_ahead(&self, fd: i32, offset: u64, length: u64) {
        self.reading_for_it(|| Linux.read_ahead(fd, offset, length));
    }

    fn await_read(&self, fd: i32, offset: u64) {
        self.reading_for_it(|| Linux.await_read(fd, offset));
    }

    fn advise(&self, fd: i32, advice: Advice) {
        Linux.advise(fd, advice);
    }

    fn await_written(&self, fd: i32, range: (u64, u64), left: u64) {
        may_take_long();
        Linux.await_written(fd, range, left);
    }

    fn write_back(&self, fd: i32, offset: u64, length: u64) {
        may_take_long();
        Linux.write_back(fd, offset, length);
    }

    fn is_between_calls(&self) -> bool {
        self.waiting.is_some() && !self.abandoned.get()
    }

    fn drop_cached(&self, fd: i32, offset: u64, length: u64) {
        may_take_long();
        Linux.drop_cached(fd, offset, length);
    }

    fn is_uncached(&self, fd: i32) -> bool {
        Linux.is_uncached(fd)
    }

    fn is_stacked(&self, fd: i32) -> bool {
        Linux.is_stacked(fd)
    }

    fn wake_all(&self, word: &AtomicU32) {
        Linux.wake_all(word);
    }

    fn disks(&self, each: impl FnMut(DiskTraffic)) -> bool {
        Linux.disks(each)
    }

    fn network(&self) -> Option<NetworkTraffic> {
        Linux.network()
    }

    fn stalled(&self) -> Option<Nanos> {
        Linux.stalled()
    }

    fn disk_of(&self, device: u64) -> Option<u64> {
        Linux.disk_of(device)
    }
}

impl System for Target<'_> {
    fn count(&self, fd: i32, offset: u64, length: u64) -> Result<Counts, Refusal> {
        Linux.count(fd, offset, length)
    }

    fn resident(&self, fd: i32, offset: u64, length: u64) -> Option<u64> {
        Linux.resident(fd, offset, length)
    }

    fn probe(&self, fd: i32, offset: u64, length: u64) -> Option<Probed> {
        // A probe reads what it does not find.
        self.reading_for_it(|| Linux.probe(fd, offset, length))
    }
}

/// Signals that a sender expects to take effect: a terminal's, a shell's, an administrator's.
/// Timers and the like are not among them; they would let a program run that sets them often
/// enough.
const MINDED: [i32; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
];

/// Returns true if such a signal is pending until the thread's call is done. A fatal one needs no
/// look: the kernel lets it through.
fn has_signal(thread: u32) -> bool {
    let Some(text) = proc::status(thread) else { return false };
    let mask = |label| {
        let digits = proc::field(&text, label).unwrap_or_default();
        u64::from_str_radix(&digits, 16).unwrap_or(0)
    };
    let minded = MINDED.iter().fold(0, |all, signal| all | 1u64 << (signal - 1));
    let deaf = mask("SigBlk") | mask("SigIgn");
    (mask("SigPnd") | mask("ShdPnd")) & !deaf & minded != 0
}
