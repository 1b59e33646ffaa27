//! Every amount and time that tunes the watcher, by concept, with its unit, its meaning and the decision behind it.
//!
//! No value is changed at run time. Each is defined once, by [`tuning`], which makes the constant and its row in
//! the table that `discnice doctor --tuning` shows: a value that is not in the table cannot be used. Buffer sizes and
//! numbers of the kernel's interfaces are no tuning, and stay where they are used.

use std::time::Duration;

use discnice_units::{Nanos, Rate};

pub mod accounting;
pub mod discovery;
pub mod holding;
pub mod looks;
pub mod network;
pub mod others;
pub mod read_ahead;
pub mod writeback;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    Rate,
    /// One part in so many.
    Part,
    /// Things.
    Count,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name of the constant.
    pub name: &'static str,
    /// The number, in its unit.
    pub value: u64,
    /// What the number counts.
    pub unit: Unit,
    /// What the constant decides.
    pub meaning: &'static str,
    /// The number of the decision record that says why.
    pub adr: u32,
}

/// The rows of one concept.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name of the module with its constants.
    pub name: &'static str,
    /// What the constants tune.
    pub about: &'static str,
    /// Its constants, in the order of the source.
    pub rows: Vec<Row>,
}

/// A type of a tuned constant.
pub trait Tuned {
    /// Returns the number that the table shows.
    fn number(self) -> u64;
}

impl Tuned for Nanos {
    fn number(self) -> u64 {
        self.0
    }
}

impl Tuned for Duration {
    fn number(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Tuned for Rate {
    fn number(self) -> u64 {
        self.get()
    }
}

impl Tuned for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Tuned for u32 {
    fn number(self) -> u64 {
        self.into()
    }
}

impl Tuned for usize {
    fn number(self) -> u64 {
        self as u64
    }
}

/// Defines the constants of one concept, and the function `group` that lists them.
#[macro_export]
macro_rules! define_tuning {
    ($about:literal: $($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $value:expr, $unit:ident, adr $adr:literal;)+) => {
        $($(#[doc = $meaning])+ pub const $name: $type = $value;)+

        /// Lists these constants for the table of all.
        #[must_use]
        pub fn group() -> $crate::tuning::Group {
            let name = module_path!().rsplit("::").next().unwrap_or_default();
            let rows = vec![$($crate::tuning::Row {
                name: stringify!($name),
                value: $crate::tuning::Tuned::number($name),
                unit: $crate::tuning::Unit::$unit,
                meaning: concat!($($meaning),+),
                adr: $adr,
            }),+];
            $crate::tuning::Group { name, about: $about, rows }
        }
    };
}

pub use define_tuning as tuning;

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
