//! The regulator on a simulated machine.

use crate::simulation::Machine;

mod advised;
mod cached;
mod deleted;
mod programs;
mod reading;
mod written;

/// The limit, in bytes a second.
const RATE: u64 = 5 << 20;

/// A machine with a file of `size` bytes.
fn machine(size: u64) -> Machine {
    Machine::new(size, true)
}
