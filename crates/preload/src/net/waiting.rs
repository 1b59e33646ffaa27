//! What all waits for readiness share.

use core::ffi::c_int;

use discnice_regulator::LimitsVersion;
use discnice_units::{Moment, Nanos};

use crate::engine;
use crate::net::parked;
use crate::net::waits::Waits;

/// While sockets get parked, a wait is looked at so often: another thread may have parked one that
/// this wait has to report.
const LOOK: Nanos = Nanos::from_millis(50);

/// Returns true if a wait must be ours: a socket may be parked while it lasts.
#[inline(always)]
pub fn is_regulated() -> bool {
    engine::limits_traffic() || parked::any()
}

/// A wait that only the kernel ends. It is listed, so that no thread parks a socket for which it
/// would have to end.
#[inline(always)]
pub fn listed(waits: Waits, real: impl FnOnce() -> c_int) -> c_int {
    if engine::class().is_none() {
        return real();
    }
    let slot = engine::start_waiting(waits.number());
    let result = real();
    engine::end_waiting(slot);
    result
}

/// A stretch of a wait: a long one is listed.
pub fn stretch(waits: Waits, time: Option<Nanos>, real: &impl Fn(Option<Nanos>) -> c_int) -> c_int {
    if time.is_some_and(|time| time <= LOOK) { real(time) } else { listed(waits, || real(time)) }
}

/// Until when to wait at a stretch: the next turn, the program's own end, or the next look; `None`
/// for ever.
pub fn next_look(next: Option<Moment>, now: Moment, end: Option<Moment>) -> Option<Moment> {
    let look = (next.is_some() || parked::recently(now)).then_some(now.plus(LOOK));
    [next, end, look].into_iter().flatten().min()
}

/// The limits as they are now.
pub fn limits() -> LimitsVersion {
    engine::regulator().map_or(LimitsVersion(0), |regulator| regulator.limits())
}
