//! Standing still by ptrace(2): no signal, nothing that the parent or a shell could see.
//!
//! A process is traced only while it is held, so that a debugger can have it in between, and so that
//! its signals and stops are its own affair for the rest of the time. A thread that is about to
//! receive a signal, or that job control has stopped, is let go at once.

use std::collections::BTreeMap;

use discnice_ledger::outside::Mechanism;
use discnice_sys::procfs::{self, Stat};
use discnice_sys::trace::{self, Stop, Thread};
use discnice_sys::{Errno, deadline};

use super::hold::{Grip, Hold, Refused};
use crate::process::{self, Call};

/// The answer to a look at what is no thread that we trace (any more). waitid(2)
const NOT_TRACED: Errno = Errno(libc::ECHILD);

/// So often a stopped thread is told to go on: a system call may fail once.
const TRIES: u32 = 3;

/// How a seized thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was told to stop.
    Moving,
    Stopped,
}

/// A hold by ptrace(2).
#[derive(Debug)]
pub struct Freeze {
    id: u32,
    threads: BTreeMap<u32, State>,
}

impl Freeze {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self { id, threads: BTreeMap::new() }
    }

    /// Takes hold of one thread.
    fn take(&mut self, thread: u32) -> Result<(), Refused> {
        match trace::seize(thread) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(()),
            Err(_)
                if process::tracer(self.id.cast_signed()).is_some() && self.threads.is_empty() =>
            {
                return Err(Refused::Traced);
            }
            Err(_) if self.threads.is_empty() => return Err(Refused::Forbidden),
            // One thread of many: a debugger is just taking them over.
            Err(_) => return Ok(()),
        }
        self.threads.insert(thread, State::Moving);
        // Gone meanwhile: `tend` finds out.
        let _ = trace::interrupt(thread);
        Ok(())
    }

    /// Takes hold of the threads that are in one of these states.
    fn take_all(&mut self, wanted: &[u8]) -> Result<Grip, Refused> {
        self.tend();
        self.take_new(wanted)
    }

    /// Takes hold of those that are not known yet. Not while a thread executes a program: it ends the others and waits until we
    /// have taken note of that, and to seize a thread waits for it. ptrace(2), "execve(2) under ptrace"
    fn take_new(&mut self, wanted: &[u8]) -> Result<Grip, Refused> {
        let unknown = process::threads(self.id).filter(|thread| !self.threads.contains_key(thread));
        let unknown: Vec<u32> = unknown.collect();
        if !unknown.is_empty() && procfs::is_executing(self.id) {
            return Ok(Grip::Loose);
        }
        let shared = unknown.len() + self.threads.len() > 1;
        let found = unknown.into_iter().filter_map(procfs::stat_unguarded);
        let found: Vec<_> = found.map(|stat| (stat, self.call_of(&stat, shared, wanted))).collect();
        if !found.is_empty() && self.is_executing(found.iter().filter_map(|(_, call)| *call)) {
            return Ok(Grip::Loose);
        }
        let mut asleep = false;
        for (stat, call) in found {
            match stat.id {
                // The first thread may have ended, while the process goes on.
                _ if stat.flags & process::WORKER != 0 || matches!(stat.state, b'Z' | b'X') => {}
                thread if wanted.contains(&stat.state) => self.take(thread)?,
                thread if shared && call.is_some_and(goes_on_undisturbed) => self.take(thread)?,
                _ => asleep = true,
            }
        }
        let moving = self.threads.values().any(|state| *state == State::Moving);
        Ok(if asleep || moving || self.threads.is_empty() { Grip::Loose } else { Grip::Firm })
    }

    /// The call in which a thread sleeps, if it matters: it may be taken, or one that waits for it, or it may execute a program.
    fn call_of(&self, stat: &Stat, shared: bool, wanted: &[u8]) -> Option<Call> {
        let matters = match stat.state {
            b'D' => true,
            b'S' => shared || wanted.contains(&b'S'),
            _ => false,
        };
        matters.then(|| process::call(self.id, stat.id))?
    }

    /// Whether one of these calls, or that of a thread that has not stopped yet, is an execve(2): it waits for a disk, for what
    /// serves a file, or for the end of others.
    fn is_executing(&self, calls: impl Iterator<Item = Call>) -> bool {
        let moving = self.threads.iter().filter(|(_, state)| **state == State::Moving);
        let moving = moving.filter_map(|(thread, _)| process::call(self.id, *thread));
        calls.chain(moving).any(|call| matches!(call.number, libc::SYS_execve | libc::SYS_execveat))
    }

    /// Takes note of how a seized thread was seen; false when it is none any more.
    fn follow(thread: u32, state: &mut State, seen: Result<Thread, Errno>) -> bool {
        let Some(now) = Self::judge(thread, *state, seen) else { return false };
        if (*state, now) == (State::Moving, State::Stopped) {
            // At once: if we are killed the thread goes on with what it has in its registers.
            trace::resume_call(thread);
        }
        *state = now;
        true
    }

    /// Finds a seized thread that has executed a program. It is the only one left and goes on by the number of the process,
    /// still traced by us, and if it did so before it was told to stop, it has not been told. ptrace(2), "execve(2) under ptrace"
    fn follow_execution(&mut self) {
        let mut state = self.threads.remove(&self.id).unwrap_or(State::Moving);
        if state == State::Moving {
            // Refused if we do not trace it, which a look shows as well.
            let _ = trace::interrupt(self.id);
        }
        if Self::follow(self.id, &mut state, trace::look(self.id)) {
            self.threads.insert(self.id, state);
        }
    }

    /// What to remember of a seized thread that was seen like this, and was `known` to stand like that.
    fn judge(thread: u32, known: State, seen: Result<Thread, Errno>) -> Option<State> {
        match seen {
            Ok(Thread::Moving) => Some(State::Moving),
            Ok(Thread::Stopped(Stop::Interrupted)) => Some(State::Stopped),
            Ok(Thread::Stopped(Stop::JobControl)) => kept_unless(let_go(thread, 0)),
            Ok(Thread::Stopped(Stop::Signal(signal))) => kept_unless(let_go(thread, signal)),
            Ok(Thread::Ended) => {
                trace::reap(thread);
                None
            }
            Err(NOT_TRACED) => None,
            // What cannot be looked at is let go if it stands, and else looked at again.
            Err(_) => trace::detach(thread, 0).is_err().then_some(known),
        }
    }
}

/// What to remember of a thread that was to be let go: one that has not been moves on, as it was killed.
fn kept_unless(is_gone: bool) -> Option<State> {
    (!is_gone).then_some(State::Moving)
}

/// Lets a stopped thread go, with this signal or none; returns whether it is traced no more. If the kernel does not let it go, this
/// process ends, as that does.
fn let_go(thread: u32, signal: i32) -> bool {
    for _ in 0..TRIES {
        if trace::detach(thread, signal).is_ok() || trace::reap(thread) {
            return true;
        }
        // It was killed, and ends.
        if !matches!(trace::look(thread), Ok(Thread::Stopped(_))) {
            return false;
        }
    }
    deadline::expire();
    false
}

/// Whether a call waits for another thread of its process, or for a worker that the kernel has there (io_uring), which may wake
/// it just before it is stopped itself, and goes on after a stop as if nothing had been.
fn goes_on_undisturbed(call: Call) -> bool {
    match call.number {
        libc::SYS_futex => true,
        libc::SYS_io_uring_enter => {
            trace::is_resumed(call.number, |place| call.arguments.get(place).copied())
        }
        _ => false,
    }
}

impl Hold for Freeze {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Ptrace
    }

    fn press(&mut self) -> Result<Grip, Refused> {
        // Runs, or waits for a disk or its like.
        self.take_all(b"RD")
    }

    fn press_all(&mut self) -> Result<Grip, Refused> {
        self.take_all(b"RDS")
    }

    fn tend(&mut self) {
        let id = self.id;
        let mut is_executed = false;
        self.threads.retain(|&thread, state| {
            let seen = trace::look(thread);
            // Without an end that we were told of, a number is gone only so.
            is_executed |= thread != id && seen == Err(NOT_TRACED);
            Self::follow(thread, state, seen)
        });
        if is_executed {
            self.follow_execution();
        }
    }

    fn release(&mut self) -> bool {
        self.tend();
        self.threads.retain(|thread, state| *state == State::Moving || !let_go(*thread, 0));
        self.threads.is_empty()
    }
}

#[cfg(test)]
mod tests;
