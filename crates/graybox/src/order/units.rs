//! Cuts a file into access units and says which of them come first (section 4.1.2).

use std::cmp::Reverse;

use crate::fccd::Residency;

/// A part of a file that is read in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// First byte, and the one behind the last.
    pub start: u64,
    pub end: u64,
    pub cached_bytes: u64,
    /// Less than a record, at the end of the file.
    pub torn: bool,
}

impl Unit {
    /// Quarters of it that are cached: finer differences are not worth a jump of the disk's head.
    pub fn quarters(&self) -> u128 {
        let length = u128::from(self.end - self.start);
        u128::from(self.cached_bytes) * 4 / length.max(1)
    }

    /// Sorts the most cached first, and what is torn last.
    pub fn rank(&self) -> (bool, Reverse<u128>) {
        (self.torn, Reverse(if self.torn { 0 } else { self.quarters() }))
    }
}

//= gray-box/4.1.2-boundaries
/// Cuts in file order: units of about `access_unit` bytes that end where a record of `align` bytes
/// does, and what is left of a record at the end.
pub(super) fn units(residency: &Residency, access_unit: u64, align: u64) -> Vec<Unit> {
    let align = align.max(1);
    let length = (access_unit / align).max(1).saturating_mul(align);
    let whole_records = residency.size / align * align;
    let unit = |start: u64, end: u64, torn: bool| {
        let cached_bytes = residency.cached_within(start, end - start);
        Unit { start, end, cached_bytes, torn }
    };
    let mut units = Vec::new();
    let mut start = 0;
    while start < whole_records {
        let end = start.saturating_add(length).min(whole_records);
        units.push(unit(start, end, false));
        start = end;
    }
    if whole_records < residency.size {
        units.push(unit(whole_records, residency.size, true));
    }
    units
}
