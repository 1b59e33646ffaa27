//! Metadata operations, and changes among them, that are not yet counted.

use core::cell::Cell;

use super::Due;

/// Metadata operations that pass unasked before they are counted; without a limit they may be
/// counted when the account is read.
const NAMED: u32 = 64;
/// The most that pass in a class without a limit.
const NAMED_UNLIMITED: u32 = 1024;

/// Changes of names from one question where they are made to the next, and until they are counted.
const CHANGES: u32 = 64;

/// Metadata operations and changes that passed unasked and are not yet counted.
#[derive(Debug, Default)]
pub struct Names {
    uncounted: Cell<u32>,
    changes: Cell<u32>,
    uncounted_changes: Cell<u32>,
}

impl Names {
    /// Counts an operation that is not made to wait; returns why they should be counted in the
    /// class now.
    #[inline(always)]
    pub fn count(&self) -> Option<Due> {
        let named = self.uncounted.get().wrapping_add(1);
        self.uncounted.set(named);
        if named >= NAMED { Some(Due::Names) } else { None }
    }

    /// Counts an operation in a class without a limit, unless they should be counted in the class
    /// before.
    #[inline(always)]
    pub fn count_unlimited(&self) -> Option<Due> {
        self.count_below(NAMED_UNLIMITED)
    }

    /// Counts an operation under a limit of other resources, unless they should be counted in the
    /// class before.
    #[inline(always)]
    pub fn count_limited(&self) -> Option<Due> {
        self.count_below(NAMED)
    }

    #[inline(always)]
    fn count_below(&self, most: u32) -> Option<Due> {
        let named = self.uncounted.get() + 1;
        if named < most {
            self.uncounted.set(named);
            None
        } else {
            Some(Due::Names)
        }
    }

    /// Counts a change of names or inodes; returns true for the first of a thread, and for one in [`CHANGES`]: these are to be
    /// counted in the class, and it is to be asked on which disk they are.
    pub fn count_change(&self) -> bool {
        self.uncounted_changes.set(self.uncounted_changes.get().wrapping_add(1));
        self.changes.replace(self.changes.get().wrapping_add(1)).is_multiple_of(CHANGES)
    }

    /// Returns and clears the number of operations since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.uncounted.take().into()
    }

    /// Returns and clears the number of changes since the last call.
    pub(crate) fn take_changes(&self) -> u64 {
        self.uncounted_changes.take().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_and_one_in_many_are_asked_where_they_are() {
        let names = Names::default();
        let asked: Vec<u32> = (0..200).filter(|_| names.count_change()).collect();
        assert_eq!(asked, [0, CHANGES, 2 * CHANGES, 3 * CHANGES]);
        assert_eq!((names.take_changes(), names.take_changes()), (200, 0));
    }

    #[test]
    fn operations_are_counted_in_the_class_sooner_under_a_limit() {
        let names = Names::default();
        let pass =
            |count: &dyn Fn() -> Option<Due>| (0..5000).take_while(|_| count().is_none()).count();
        assert_eq!(pass(&|| names.count_unlimited()), 1023);
        assert_eq!(names.take(), 1023);
        assert_eq!(pass(&|| names.count_limited()), 63);
        assert_eq!(names.take(), 63);
    }
}
