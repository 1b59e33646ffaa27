//! The regulator on a simulated machine.

use crate::tests::simulation::Machine;

mod advised;
mod cached;
mod ceilings;
mod created_files;
mod deleted;
mod giving_way;
mod lying_machine;
mod programs;
mod reading;
mod simulation;
mod turns;
mod written;

/// The limit, in bytes a second.
const RATE: u64 = 5 << 20;

/// A machine with a file of `size` bytes.
fn machine(size: u64) -> Machine {
    Machine::new(size, true)
}
