//! What a job gets that was given no numbers: all of an idle machine, and a tenth of the disk while
//! others are busy, as the guests of Rate Windows (4, figure 4).

use discnice_ledger::policy::{Limits, Resource, When};
use discnice_units::Rate;

use crate::bandwidth::bandwidth;

/// A guest's part of the bandwidth is one in so many.
const PART: u64 = 10;

//= rate-windows/4-guest-rate
/// The limits of a job that was given none.
pub fn limits() -> Limits {
    let tenth = Rate::per_second(bandwidth().get() / PART);
    let busy = Limits::UNLIMITED.with(Resource::Total, tenth).with_when(When::Busy);
    busy.with_guest(true).with_cache_protected(true).with_uplink_yielded(true)
}
