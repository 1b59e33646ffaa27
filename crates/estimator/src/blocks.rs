//! Which pages a call touches: block-based access (DiscNice, 4 and 5.4).
//!
//! The unit is the page: Linux reads and writes a file by whole pages of its cache even where the
//! file system's blocks are smaller (the paper found the same for 2.4).

//= discnice/5.2-page-units
/// The page size of the cache.
pub const PAGE: u64 = 4096;

/// A range of pages of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pages {
    /// The first.
    pub first: u64,
    /// Behind the last.
    pub end: u64,
}

impl Pages {
    /// None.
    pub const NONE: Self = Self { first: 0, end: 0 };

    //= discnice/4-blocks
    /// Returns the pages that `length` bytes at `offset` touch. Past the largest offset there are
    /// none.
    #[must_use]
    pub const fn touched(offset: u64, length: u64) -> Self {
        if length == 0 {
            return Self::NONE;
        }
        let end = offset.saturating_add(length);
        Self { first: offset / PAGE, end: end.div_ceil(PAGE) }
    }

    /// Returns the pages of a read in a file of `size` bytes: nothing is read behind its end.
    #[must_use]
    pub const fn read(offset: u64, length: u64, size: u64) -> Self {
        let left = size.saturating_sub(offset);
        Self::touched(offset, if length < left { length } else { left })
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    //= discnice/5.4-page
    /// Their bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.count().saturating_mul(PAGE)
    }

    /// Offset of the first byte.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.first.saturating_mul(PAGE)
    }
}

//= rate-windows/4-dilation
/// Pages that must be read because a write covers only a part of them: the first and the last,
/// where the file has data there already (read-modify-write).
#[must_use]
pub fn read_before_write(offset: u64, length: u64, size: u64) -> [Pages; 2] {
    let end = offset.saturating_add(length);
    let (first, last) = (offset / PAGE, end / PAGE);
    let has_data = |page: u64| page.saturating_mul(PAGE) < size;
    // A write up to the end of the file leaves nothing of its last page to be kept.
    let head = (!offset.is_multiple_of(PAGE) || last == first && end < size) && has_data(first);
    let tail = !end.is_multiple_of(PAGE) && end < size && last != first;
    let one = |page: u64, wanted: bool| {
        if wanted { Pages { first: page, end: page + 1 } } else { Pages::NONE }
    };
    [one(first, head && length > 0), one(last, tail)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        //= discnice/4-blocks
        //= discnice/5.4-page
        #[test]
        fn a_page_is_touched_if_one_of_its_bytes_is(offset in 0u64..1 << 20, length in 0u64..1 << 16, size in 0u64..1 << 20) {
            let pages = Pages::read(offset, length, size);
            let bytes = offset..offset.saturating_add(length).min(size);
            for page in 0..(1 << 20) / PAGE + 32 {
                let own = page * PAGE..(page + 1) * PAGE;
                let touched = bytes.start.max(own.start) < bytes.end.min(own.end);
                prop_assert_eq!(touched, (pages.first..pages.end).contains(&page));
            }
        }

        #[test]
        fn nothing_overflows(offset: u64, length: u64, size: u64) {
            let pages = Pages::read(offset, length, size);
            prop_assert!(pages.first <= pages.end);
            let _ = (pages.bytes(), pages.offset(), read_before_write(offset, length, size));
        }

        //= rate-windows/4-dilation
        #[test]
        fn only_pages_that_keep_old_bytes_are_read_before(offset in 0u64..40_000, length in 1u64..40_000, size in 0u64..60_000) {
            let read: Vec<u64> = read_before_write(offset, length, size)
                .iter().flat_map(|pages| pages.first..pages.end).collect();
            for page in 0..30 {
                let own = page * PAGE..((page + 1) * PAGE).min(size.max(page * PAGE));
                let end = offset + length;
                let touched = offset < (page + 1) * PAGE && end > page * PAGE;
                let keeps = own.clone().any(|byte| byte < offset || byte >= end);
                prop_assert_eq!(touched && keeps, read.contains(&page), "page {}", page);
            }
        }
    }
}
