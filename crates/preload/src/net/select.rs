//! Waiting with select(2): parked sockets are left out of the sets.

use core::ffi::c_int;
use core::ptr;

use discnice_regulator::Flow;
use discnice_sys::{memory, time};
use discnice_units::Nanos;

use crate::net::waiting::{limits, next_look, stretch};
use crate::net::waits::Waits;
use crate::net::{parked, socket};

const WORDS: usize = libc::FD_SETSIZE / 64;

/// A set of the size that its type has; programs with more descriptors use poll.
type Set = [u64; WORDS];

/// Addresses of a program's three sets: for reading, for writing, and exceptional.
pub type Pointers = [*mut libc::fd_set; 3];

/// select(2) and pselect(2). `real(sets, timeout)` makes the real call.
#[inline(never)]
pub fn select(
    limit: c_int,
    sets: Pointers,
    timeout: Option<Nanos>,
    real: impl Fn(Pointers, Option<Nanos>) -> c_int,
) -> c_int {
    // Where they cannot be copied, the kernel says what is wrong, or does what we cannot.
    let Some(asked) = Sets::load(&sets, limit) else { return real(sets, timeout) };
    let mut now = time::now();
    let end = timeout.map(|timeout| now.plus(timeout));
    loop {
        let next = parked::release_due(now, limits());
        let mut sought = asked;
        sought.leave_out_parked();
        let pointers = sought.pointers();
        let time = next_look(next, now, end).map(|until| until.since(now));
        let found = stretch(Waits::Poll, time, &|time| real(pointers, time));
        now = time::now();
        if found < 0 {
            return found;
        }
        if found > 0 || end.is_some_and(|end| now >= end) {
            return if sought.store(&sets) { found } else { real(sets, Some(Nanos(0))) };
        }
    }
}

/// Copies of the three sets.
#[derive(Debug, Clone, Copy)]
struct Sets {
    parts: [Option<Set>; 3],
    words: usize,
}

impl Sets {
    /// Copies the program's sets; `None` if they cannot be read as they are, or are too large.
    fn load(from: &Pointers, limit: c_int) -> Option<Self> {
        let words = usize::try_from(limit).ok()?.div_ceil(64);
        let mut sets = Self { parts: [None; 3], words };
        for (part, pointer) in sets.parts.iter_mut().zip(from) {
            if pointer.is_null() {
                continue;
            }
            let mut set: Set = [0; WORDS];
            let used = set.get_mut(..words)?;
            if !memory::can_read(*pointer as usize, words * 8) {
                return None;
            }
            // SAFETY: so many bytes can be read, as the kernel just said, and fit.
            unsafe { ptr::copy_nonoverlapping(pointer.cast(), used.as_mut_ptr(), words) };
            *part = Some(set);
        }
        Some(sets)
    }

    /// Copies them back; `false` if the kernel could not write there either.
    fn store(&self, to: &Pointers) -> bool {
        let mut pairs =
            self.parts.iter().zip(to).filter_map(|(part, to)| Some((part.as_ref()?, to)));
        pairs.all(|(set, to)| {
            let can = self.words == 0 || memory::can_write(*to as usize, self.words * 8);
            if can {
                // SAFETY: so many bytes can be written, as the kernel just said.
                unsafe { ptr::copy_nonoverlapping(set.as_ptr(), to.cast(), self.words) };
            }
            can
        })
    }

    fn pointers(&mut self) -> Pointers {
        self.parts.each_mut().map(|part| match part {
            Some(set) => set.as_mut_ptr().cast(),
            None => ptr::null_mut(),
        })
    }

    fn leave_out_parked(&mut self) {
        for (part, flow) in self.parts.iter_mut().zip([Flow::Down, Flow::Up]) {
            for (number, word) in part.iter_mut().flatten().enumerate() {
                let mut rest = *word;
                while rest != 0 {
                    let bit = rest & rest.wrapping_neg();
                    rest &= !bit;
                    let fd = (number * 64) as c_int + bit.trailing_zeros() as c_int;
                    let Some(socket) = socket(fd) else { continue };
                    socket.note_polled();
                    if socket.parked().contains(flow) {
                        *word &= !bit;
                    }
                }
            }
        }
    }
}
