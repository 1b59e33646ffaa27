//! The table of what tunes the watcher, and the macro that makes a constant with its row.

use std::time::Duration;

use discnice_units::{Nanos, Rate};

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
