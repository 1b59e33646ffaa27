//! `gb_alloc`: finds out how much memory is there and allocates it, in one step
//! (sections 4.3.1 and 4.3.2).

use std::io;
use std::ptr::NonNull;

use discnice_units::Bytes;

use super::Demand;
use super::ledger::Ledger;
use super::region::Region;
use crate::toolbox::median_of;

/// First step of the search, in bytes; also after a step that did not fit.
const FIRST_STEP: u64 = 4 << 20;
/// Steps double up to this: touching so much takes some 30 ms, after which a caller notices that
/// others have come and want their share.
const LARGEST_STEP: u64 = 64 << 20;
/// Successive slow pages that mean paging; fewer are the scheduler.
const SLOW_IN_A_ROW: u32 = 3;
/// The second loop looks at one of so many pages: what left meanwhile left in a row, as it came, and
/// each page looked at costs a cache miss.
const SECOND_LOOK: usize = 8;
/// Pages already taken that are looked at again after each step. Looking at all of them, as the
/// paper does, makes the whole quadratic.
const LOOK_BACK: u64 = 256;

/// What time, in nanoseconds, is too long for a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// At the first touch, which allocates and zeroes.
    pub first_touch: u64,
    /// At the second touch of a page that should be resident.
    pub second_touch: u64,
}

impl Thresholds {
    /// Computes thresholds from measured times (host profile): of zeroing a page, of a resident
    /// page and of one in swap. The borders are the geometric means, halfway in orders of
    /// magnitude.
    #[must_use]
    pub fn from_times(zeroing: f64, resident: f64, swapped: f64) -> Self {
        let between = |low: f64, high: f64| (low.max(1.0) * high.max(1.0)).sqrt() as u64;
        Self { first_touch: between(zeroing, swapped), second_touch: between(resident, swapped) }
    }

    //= gray-box/4.3.2-thresholds
    /// Without a profile: times of a few pages that are likely to be there, and whatever is
    /// significantly longer (section 4.3.2).
    fn by_trial(region: &mut Region, pages: usize) -> Self {
        /// No swap device answers within this time, in nanoseconds.
        const FLOOR: u64 = 5_000;
        let page = rustix::param::page_size();
        let median = |times: &[f64]| median_of(times).unwrap_or(0.0) as u64;
        let mut times = Vec::with_capacity(pages);
        let mut note = |nanos: u64| {
            times.push(nanos as f64);
            true
        };
        region.touch(0, pages * page, &mut note);
        region.touch(0, pages * page, &mut note);
        let (first, second) = times.split_at(times.len() / 2);
        Self {
            first_touch: (median(first) * 20).max(FLOOR),
            second_touch: (median(second) * 20).max(FLOOR),
        }
    }
}

//= gray-box/4.3.1-skip
/// Counts slow pages in a row.
struct Watch {
    limit: u64,
    in_a_row: u32,
}

impl Watch {
    const fn new(limit: u64) -> Self {
        Self { limit, in_a_row: 0 }
    }

    /// Notes a touch that took `nanos`; returns false after too many slow ones in a row.
    fn sees(&mut self, nanos: u64) -> bool {
        self.in_a_row = if nanos > self.limit { self.in_a_row + 1 } else { 0 };
        self.in_a_row < SLOW_IN_A_ROW
    }

    const fn is_paging(&self) -> bool {
        self.in_a_row >= SLOW_IN_A_ROW
    }
}

/// Memory that was really there when it was allocated; given back when dropped.
#[derive(Debug)]
pub struct Grant {
    region: Region,
    length: u64,
    ledger: Ledger,
    ticket: u64,
}

impl Grant {
    /// First byte, on a page boundary; the memory is zero.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.region.start()
    }

    /// The memory.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.region.as_mut_slice()[..self.length as usize]
    }

    /// Bytes allocated.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.region.shrink(0);
        // An entry that stays is free as soon as the process ends.
        let _ = self.ledger.give_back(self.ticket);
    }
}

//= gray-box/4.3.2-gb-alloc
/// Allocates between `min` and `max` bytes, as many as fit without paging, in multiples of
/// `multiple`. `None` if less than `min` is there now.
///
/// # Errors
/// A senseless demand (`InvalidInput`); no access to the shared ledger.
pub fn gb_alloc(min: u64, max: u64, multiple: u64) -> io::Result<Option<Grant>> {
    let [min, max, multiple] = [min, max, multiple].map(Bytes::new);
    let demand = Demand::new(min, max, multiple)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    gb_alloc_with(&demand, Ledger::open()?, None)
}

/// As [`gb_alloc`], with a ledger and, from the host profile, thresholds.
///
/// # Errors
/// Of the ledger's file.
pub fn gb_alloc_with(
    demand: &Demand,
    ledger: Ledger,
    thresholds: Option<Thresholds>,
) -> io::Result<Option<Grant>> {
    let first = Bytes::new(FIRST_STEP);
    let Some((ticket, promised)) = ledger.take(demand, first)? else { return Ok(None) };
    let promised = promised.get();
    let Some(mut region) = reserve(promised, demand.most().get()) else {
        ledger.give_back(ticket)?;
        return Ok(None);
    };
    let thresholds = thresholds.unwrap_or_else(|| Thresholds::by_trial(&mut region, 64));
    let extend = &mut |wanted| ledger.extend(ticket, Bytes::new(wanted)).map(Bytes::get);
    let most = region.length() as u64;
    let found = search(&mut region, promised, most, &thresholds, extend)?;
    match demand.take(Bytes::new(found)) {
        Some(kept) => {
            let length = kept.get();
            region.shrink(length as usize);
            ledger.settle(ticket, kept)?;
            Ok(Some(Grant { region, length, ledger, ticket }))
        }
        None => {
            drop(region);
            ledger.give_back(ticket)?;
            Ok(None)
        }
    }
}

/// Address space for `most` bytes, or, where a limit forbids that, for fewer, down to `least`.
fn reserve(least: u64, most: u64) -> Option<Region> {
    let mut length = most;
    loop {
        let region = Region::reserve(usize::try_from(length).ok()?);
        if region.is_ok() || length == least {
            return region.ok();
        }
        length = (length / 2).max(least);
    }
}

//= gray-box/4.3.2-increments
/// Takes more and more of the region, in growing steps, until it has `most` bytes, no more is
/// promised (by `extend`, which is told how much is wanted and says how much may be taken), or a
/// step does not fit twice; returns the bytes that fit.
fn search(
    region: &mut Region,
    mut promised: u64,
    most: u64,
    thresholds: &Thresholds,
    extend: &mut dyn FnMut(u64) -> io::Result<u64>,
) -> io::Result<u64> {
    let (mut size, mut step, mut failures) = (0, FIRST_STEP, 0);
    while size < most {
        if size == promised {
            promised = extend((size + step).min(most))?;
            if promised <= size {
                break;
            }
        }
        let end = (size + step).min(promised);
        if fits(region, size, end, thresholds) {
            size = end;
            step = (step * 2).min(LARGEST_STEP);
            continue;
        }
        region.release(size as usize);
        failures += 1;
        if failures == 2 {
            break;
        }
        step = FIRST_STEP;
    }
    Ok(size)
}

//= gray-box/4.3.1-two-loops
/// The two loops: the first moves the pages to a known state, and stops early if paging sets in;
/// the second looks, at some of them, whether they have stayed.
fn fits(region: &mut Region, from: u64, to: u64, thresholds: &Thresholds) -> bool {
    let mut first = Watch::new(thresholds.first_touch);
    let reached = region.populate(from as usize, to as usize, |nanos| first.sees(nanos));
    let mut second = Watch::new(thresholds.second_touch);
    region.touch_some(from as usize, reached, SECOND_LOOK, |nanos| second.sees(nanos));
    if second.is_paging() || !stayed(region, from, thresholds) {
        return false;
    }
    // A false alarm: the rest of the step, with the suspicion out of the way.
    if first.is_paging() {
        let mut rest = Watch::new(thresholds.first_touch);
        region.populate(reached, to as usize, |nanos| rest.sees(nanos));
        return !rest.is_paging();
    }
    true
}

/// Looks at pages spread over what was taken before.
fn stayed(region: &mut Region, size: u64, thresholds: &Thresholds) -> bool {
    let page = rustix::param::page_size() as u64;
    let stride = (size / LOOK_BACK).max(page) / page * page;
    let mut watch = Watch::new(thresholds.second_touch);
    let mut at = 0;
    while at < size && !watch.is_paging() {
        region.touch(at as usize, (at + page) as usize, |nanos| watch.sees(nanos));
        at += stride;
    }
    !watch.is_paging()
}

#[cfg(test)]
mod tests;
