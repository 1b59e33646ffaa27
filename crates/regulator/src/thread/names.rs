//! Metadata operations that are not yet counted.

use core::cell::Cell;

use super::Due;

/// Metadata operations that pass unasked before they are counted; without a limit they may be
/// counted when the account is read.
const NAMED: u32 = 64;
/// The most that pass in a class without a limit.
const NAMED_UNLIMITED: u32 = 1024;

/// Metadata operations that passed unasked and are not yet counted.
#[derive(Debug, Default)]
pub struct Names(Cell<u32>);

impl Names {
    /// Counts an operation that is not made to wait; returns why they should be counted in the
    /// class now.
    #[inline(always)]
    pub fn count(&self) -> Option<Due> {
        let named = self.0.get().wrapping_add(1);
        self.0.set(named);
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
        let named = self.0.get() + 1;
        if named < most {
            self.0.set(named);
            None
        } else {
            Some(Due::Names)
        }
    }

    /// Returns and clears the number of operations since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.0.take().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
