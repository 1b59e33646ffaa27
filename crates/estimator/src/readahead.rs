//! The kernel's read-ahead, emulated (DiscNice, 4.3): mm/readahead.c and mm/filemap.c of Linux 6.16 and later.
//!
//! The pages that the kernel reads for a request depend on what the descriptor read before, on what
//! is cached before the request, and on marks in the cache. A mark is set on a folio (several pages
//! as one), and a read of any of its pages triggers the next window.

use crate::blocks::{PAGE, Pages};

/// Words that hold the state of a file.
pub(crate) const WORDS: usize = 6;
/// Pages of the longest window that is followed: 64 MiB.
const LONGEST: u64 = 1 << 14;
/// The largest folio has 2 to the power of so many pages.
const ORDER_MAX: u32 = 9;
/// How far each window's folios are larger than those of the one before.
const ORDER_STEP: u32 = 2;

/// The pages of one file that are in the cache, and their marks.
pub(crate) trait Cache {
    /// Adds these pages to the cache; returns how many were not there.
    fn bring_in(&self, pages: Pages) -> u64;
    /// How many of these are not there.
    fn absent(&self, pages: Pages) -> u64;
    /// The folio of 2 to the power of `order` pages that begins with `first` carries a mark from now on.
    fn mark(&self, first: u64, order: u32);
    /// Takes its mark away; returns whether it had one.
    fn take_mark(&self, first: u64, order: u32) -> bool;
}

/// The state of a descriptor's read-ahead (`struct file_ra_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadAhead {
    /// First page and pages of the last window, and how many of these lie behind its mark.
    start: u64,
    size: u64,
    ahead: u64,
    order: u32,
    /// The page after the last read, plus one; zero before any.
    previous: u64,
    /// A bit for each order of a folio of the file that has carried a mark.
    marked: u64,
}

impl ReadAhead {
    pub(crate) fn from_words(words: [u64; WORDS]) -> Self {
        let [start, size, ahead, order, previous, marked] = words;
        let order = order.min(ORDER_MAX.into()) as u32;
        Self { start, size: size.min(LONGEST), ahead: ahead.min(LONGEST), order, previous, marked }
    }

    pub(crate) fn to_words(self) -> [u64; WORDS] {
        [self.start, self.size, self.ahead, self.order.into(), self.previous, self.marked]
    }

    /// Returns the state of a descriptor that was just opened on the same file.
    pub(crate) fn of_another_descriptor(self) -> Self {
        Self { marked: self.marked, ..Self::default() }
    }

    /// Emulates a read of these pages of a file of `size` bytes, with at most `window` pages read
    /// ahead; returns how many pages the disk reads. `filemap_get_pages`
    pub(crate) fn request(
        &mut self,
        cache: &impl Cache,
        asked: Pages,
        size: u64,
        window: u64,
    ) -> u64 {
        let mut run = Run {
            ahead: self,
            cache,
            most: window.min(LONGEST).max(asked.count()),
            last: size.div_ceil(PAGE),
            read: 0,
        };
        for page in asked.first..asked.end {
            if cache.absent(one(page)) > 0 {
                run.misses(page, asked.end - page);
                run.read += cache.bring_in(one(page));
            }
            if let Some((first, order)) = run.take_mark(page) {
                run.meets_mark(first, order, asked.end - page);
            }
        }
        let read = run.read;
        self.previous = asked.end.saturating_mul(PAGE).min(size) / PAGE + 1;
        read
    }
}

fn one(page: u64) -> Pages {
    Pages { first: page, end: page.saturating_add(1) }
}

/// One request on its way.
struct Run<'a, C> {
    ahead: &'a mut ReadAhead,
    cache: &'a C,
    /// The longest window.
    most: u64,
    /// Behind the file's last page.
    last: u64,
    read: u64,
}

impl<C: Cache> Run<'_, C> {
    /// `page` is not there, the first of `count` that are asked for. `page_cache_sync_ra`
    fn misses(&mut self, page: u64, count: u64) {
        let follows = self.ahead.previous > 0 && page.wrapping_sub(self.ahead.previous - 1) <= 1;
        let ahead = &mut *self.ahead;
        if page == 0 || count > self.most || follows {
            ahead.start = page;
            ahead.size = first_window(count, self.most);
            let longer = ahead.size.checked_sub(count).filter(|more| *more > 0);
            ahead.ahead = longer.unwrap_or(ahead.size / 2);
        } else {
            let before = self.there_before(page);
            if before <= count {
                self.bring_in(Pages { first: page, end: page.saturating_add(count) });
                return;
            }
            let whole = before == page;
            let stream = if whole { before.saturating_mul(2) } else { before };
            self.ahead.start = page;
            self.ahead.size = stream.saturating_add(count).min(self.most);
            self.ahead.ahead = 1;
        }
        self.ahead.order = 0;
        self.window();
    }

    /// A page of a marked folio is read. `page_cache_async_ra`
    fn meets_mark(&mut self, first: u64, order: u32, count: u64) {
        let ahead = &mut *self.ahead;
        let end = ahead.start.saturating_add(ahead.size);
        let expected = end.saturating_sub(ahead.ahead) >> order << order;
        if first == expected {
            ahead.start = end;
            ahead.size = ahead.size.max(next_window(ahead.size, self.most));
        } else {
            let there = self.there_from(first.saturating_add(1)).saturating_add(1);
            if there > self.most {
                return;
            }
            self.ahead.start = first.saturating_add(there);
            self.ahead.size = next_window(there.saturating_add(count), self.most);
        }
        let ahead = &mut *self.ahead;
        ahead.order = (ahead.order + ORDER_STEP).min(ORDER_MAX).min(log2(ahead.size));
        // It ends where a folio of its order does.
        let end = ahead.start.saturating_add(ahead.size) >> ahead.order << ahead.order;
        if end > ahead.start {
            ahead.size = end - ahead.start;
        }
        ahead.ahead = ahead.size;
        self.window();
    }

    //= discnice/5.4-modes
    /// The window comes in, folio by folio, up to what is there already; the rest page by page.
    /// `page_cache_ra_order`
    fn window(&mut self) {
        let (start, size) = (self.ahead.start, self.ahead.size);
        let end = start.saturating_add(size).min(self.last);
        let mark = start.saturating_add(size).saturating_sub(self.ahead.ahead);
        let largest = self.ahead.order.min(ORDER_MAX).min(log2(size));
        self.ahead.order = largest;
        let mut at = start;
        while at < end {
            let mut order = largest.min(at.trailing_zeros());
            while order > 0 && end - at < 1 << order {
                order -= 1;
            }
            let folio = Pages { first: at, end: at + (1 << order) };
            if self.cache.absent(folio) < folio.count() {
                break;
            }
            self.read += self.cache.bring_in(folio);
            if mark >> order << order == at {
                self.mark(at, order);
            }
            at = folio.end;
        }
        let left = Pages { first: at, end };
        if mark >= left.first && mark < left.end && self.cache.absent(one(mark)) > 0 {
            self.mark(mark, 0);
        }
        self.bring_in(left);
    }

    fn mark(&mut self, first: u64, order: u32) {
        self.ahead.marked |= 1 << order;
        self.cache.mark(first, order);
    }

    /// The marked folio that a page belongs to, if there is one; it loses its mark.
    fn take_mark(&self, page: u64) -> Option<(u64, u32)> {
        (0..=ORDER_MAX)
            .filter(|order| self.ahead.marked >> order & 1 == 1)
            .map(|order| (page >> order << order, order))
            .find(|(first, order)| self.cache.take_mark(*first, *order))
    }

    fn bring_in(&mut self, pages: Pages) {
        let inside = Pages { first: pages.first, end: pages.end.min(self.last) };
        if inside.count() > 0 {
            self.read += self.cache.bring_in(inside);
        }
    }

    /// How many pages in a row are there before this one, as far as a window.
    fn there_before(&self, page: u64) -> u64 {
        let most = self.most.min(page);
        (1..=most).take_while(|back| self.cache.absent(one(page - back)) == 0).count() as u64
    }

    /// How many are there from this one on, at most one more than a window.
    fn there_from(&self, page: u64) -> u64 {
        (0..=self.most)
            .take_while(|on| self.cache.absent(one(page.saturating_add(*on))) == 0)
            .count() as u64
    }
}

fn log2(number: u64) -> u32 {
    number.checked_ilog2().unwrap_or(0)
}

/// `get_init_ra_size`
fn first_window(count: u64, most: u64) -> u64 {
    let rounded = count.min(LONGEST).next_power_of_two();
    if rounded <= most / 32 {
        rounded * 4
    } else if rounded <= most / 4 {
        rounded * 2
    } else {
        most
    }
}

/// `get_next_ra_size`
fn next_window(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}
