//! Every amount and time that tunes the watcher, by concept, with its unit, its meaning and the decision behind it.
//!
//! No value is changed at run time. Each is defined once, by [`tuning`], which makes the constant and its row in
//! the table that `discnice doctor --tuning` shows: a value that is not in the table cannot be used. Buffer sizes and
//! numbers of the kernel's interfaces are no tuning, and stay where they are used.

pub mod accounting;
pub mod discovery;
pub mod holding;
pub mod looks;
pub mod network;
pub mod others;
pub mod read_ahead;
mod table;
pub mod writeback;

pub use table::{Group, Row, Tuned, Unit, tuning};

/// Lists the constants of this crate.
#[must_use]
pub fn groups() -> Vec<Group> {
    vec![
        looks::group(),
        holding::group(),
        accounting::group(),
        discovery::group(),
        read_ahead::group(),
        writeback::group(),
        others::group(),
        network::group(),
    ]
}

#[cfg(test)]
mod tests;
