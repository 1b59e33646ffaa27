//! A process that gives a class its usual rate back if the parent that sets it for `--finish-by` is killed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use discnice_ledger::policy::Resource;
use discnice_processes::fork;
use discnice_sys::{futex, time};
use discnice_units::Rate;
use rustix::pipe::{PipeFlags, pipe_with};

use super::guardian;
use crate::classes::MappedClass;

/// A rate that is set for a while, and the one that holds otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Paced {
    /// What was set last, or was there at first.
    pub set: Rate,
    /// The rate without the job.
    pub usual: Rate,
}

impl Paced {
    /// Gives the class its usual rate, unless it has another one than was set here: the user's own.
    pub fn end(self, found: &MappedClass) {
        if found.class.total().threshold() == self.set && self.set != self.usual {
            set_rate(found, self.usual);
        }
    }

    fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.set.get()) << 64 | u128::from(self.usual.get())).to_ne_bytes()
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let word = u128::from_ne_bytes(bytes);
        let [set, usual] = [(word >> 64) as u64, word as u64].map(Rate::per_second);
        Self { set, usual }
    }
}

/// Sets the rate that holds, not the one that is kept for later versions of the class.
pub fn set_rate(found: &MappedClass, rate: Rate) {
    let limits = found.class.limits().with(Resource::Total, rate);
    found.class.set_limits(time::now(), &limits);
    futex::wake_all(found.class.changes());
}

/// This process's end of a pipe to the guardian, which acts when it is closed.
#[derive(Debug)]
pub struct Guardian(OwnedFd);

impl Guardian {
    /// Starts it.
    ///
    /// # Errors
    /// Descriptors or processes are short.
    pub fn start(found: MappedClass) -> io::Result<Self> {
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        fork::detached(told, move |told| guard(told, &found))?;
        Ok(Self(tell))
    }

    /// Tells it what is about to be set.
    pub fn tell(&self, paced: Paced) {
        // Without a guardian the rate is set all the same.
        let _ = rustix::io::write(&self.0, &paced.to_bytes());
    }
}

/// The guardian's whole life.
fn guard(mut told: File, found: &MappedClass) {
    guardian::become_one();
    let (mut last, mut bytes) = (None, [0; 16]);
    while told.read_exact(&mut bytes).is_ok() {
        last = Some(Paced::from_bytes(bytes));
    }
    if let Some(paced) = last {
        paced.end(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_pass_the_pipe_unchanged() {
        let paced = Paced { set: Rate::per_second(5 << 20), usual: Rate::UNLIMITED };
        let passed = Paced::from_bytes(paced.to_bytes());
        assert_eq!((passed.set, passed.usual), (paced.set, paced.usual));
    }
}
