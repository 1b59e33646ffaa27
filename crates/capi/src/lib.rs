//! The C interface of DiscNice.
//!
//! Conventions: every function may be called from any thread at any time; none fails in a way that
//! the caller must handle, none prints, none ends the process. Numbers of outcomes are never
//! reused. The header `include/discnice.h` is generated from these files (`cbindgen.toml`), and a test
//! compares the two. This one has the testpoints, [`graybox`] what the kernel hides, [`toolbox`]
//! what finding that out takes.
#![allow(unsafe_code, reason = "C calls these functions and hands over pointers")]

pub mod graybox;
pub mod toolbox;

use std::ffi::{CStr, c_char, c_int};

use discnice_progress::model::Setting;
use discnice_progress::testpoint::{NotSet, Outcome};

/// The job goes on at once.
pub const DISCNICE_WENT: c_int = 0;
/// Too soon after the last testpoint: nothing was looked at.
pub const DISCNICE_TOO_SOON: c_int = 1;
/// The job lagged behind its target and was suspended; it may go on now.
pub const DISCNICE_SUSPENDED: c_int = 2;
/// The job is on probation and waited for its share of time; it may go on now.
pub const DISCNICE_HELD: c_int = 3;
/// The report taught nothing (first of its set, no progress, a counter that went backwards or is not a
/// number, a set with another number of metrics than before); the job goes on.
pub const DISCNICE_SKIPPED: c_int = 4;
/// Settings were made after the first testpoint, or a second time; they change nothing.
pub const DISCNICE_TOO_LATE: c_int = -2;
/// An argument was refused (a negative index or count, a null pointer); the job goes on.
pub const DISCNICE_INVALID: c_int = -1;

//= ms-manners/7.1-call
/// Reports progress and returns when it is fine to go on.
///
/// `index` names the set of metrics, such as a phase of the job; `count` is the number of metrics of
/// this set, 1 to 16, always the same for an index; `metrics` holds cumulative counters.
///
/// Returns one of the `DISCNICE_` outcomes. The caller may ignore it.
///
/// # Safety
/// `metrics` is null or points to `count` readable doubles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_testpoint(
    index: c_int,
    count: c_int,
    metrics: *const f64,
) -> c_int {
    let (Ok(index), Ok(count)) = (u32::try_from(index), usize::try_from(count)) else {
        return DISCNICE_INVALID;
    };
    if metrics.is_null() || count == 0 || count > discnice_progress::model::ridge::MAX_METRICS {
        return DISCNICE_INVALID;
    }
    // SAFETY: not null, and the caller promises `count` readable doubles, at most 16 of them.
    let metrics = unsafe { std::slice::from_raw_parts(metrics, count) };
    match discnice_progress::testpoint::testpoint(index, metrics) {
        Outcome::TooSoon => DISCNICE_TOO_SOON,
        Outcome::Went(_) => DISCNICE_WENT,
        Outcome::Suspended(_) => DISCNICE_SUSPENDED,
        Outcome::Held(_) => DISCNICE_HELD,
        Outcome::Skipped(_) => DISCNICE_SKIPPED,
    }
}

//= ms-manners/8-priority-by-need
/// Sets the calling thread's priority relative to other polite threads of the user: one with 200 gets
/// twice the time of one with 100, which is the default. Below 1 counts as 1.
#[unsafe(no_mangle)]
pub extern "C" fn discnice_set_priority(priority: c_int) {
    discnice_progress::testpoint::set_priority(u32::try_from(priority).unwrap_or(1));
}

/// Declares the resources that the calling thread uses, one bit each, by a convention among the
/// user's jobs. Polite threads without a common bit may run side by side. 0, the default, is everything.
#[unsafe(no_mangle)]
pub extern "C" fn discnice_set_resources(bits: u64) {
    discnice_progress::testpoint::set_resources(bits);
}

/// With true, the calling thread's testpoints never wait, until set to false again.
#[unsafe(no_mangle)]
pub extern "C" fn discnice_set_critical(critical: bool) {
    discnice_progress::testpoint::set_critical(critical);
}

/// Sets parameters of the regulation for this process, once and before its first testpoint; all of them or
/// none.
///
/// `settings` is a text such as `"alpha=0.02 beta=0.2 hung=60"`. The parameters are `alpha`, the probability
/// of suspending a job that is not disturbed (0.05); `beta`, that of letting a job that is disturbed go on
/// (0.2), above alpha and below 0.5; `false-stop-hours`, the hours between two suspensions of a job that
/// nothing disturbs, at least, on average, or 0 for the paper's sign test alone (1); `average-over`, the testpoints over which targets are averaged (10000);
/// `hung`, the seconds after which a thread that makes no testpoint no longer keeps its turn, and is not judged
/// (10); `probation`, the seconds for which a job without known targets runs only part of the time (3600).
///
/// Returns 0, `DISCNICE_INVALID` for a null pointer or settings that cannot be used, or `DISCNICE_TOO_LATE`.
///
/// # Safety
/// `settings` is null or points to a text that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_configure(settings: *const c_char) -> c_int {
    if settings.is_null() {
        return DISCNICE_INVALID;
    }
    // SAFETY: not null, and the caller promises a terminated text.
    let text = unsafe { CStr::from_ptr(settings) }.to_str();
    let Some(settings) = text.ok().and_then(|text| Setting::list(text).ok()) else {
        return DISCNICE_INVALID;
    };
    match discnice_progress::testpoint::set(&settings) {
        Ok(()) => 0,
        Err(NotSet::Bad(_)) => DISCNICE_INVALID,
        Err(NotSet::TooLate) => DISCNICE_TOO_LATE,
    }
}

/// Names the job, where one executable runs many. Targets are kept for each name. Returns 0, or
/// `DISCNICE_INVALID` for a null pointer or a text that is not UTF-8.
///
/// # Safety
/// `name` is null or points to a text that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_set_job_name(name: *const c_char) -> c_int {
    if name.is_null() {
        return DISCNICE_INVALID;
    }
    // SAFETY: not null, and the caller promises a terminated text.
    let Ok(name) = (unsafe { CStr::from_ptr(name) }).to_str() else { return DISCNICE_INVALID };
    discnice_progress::testpoint::set_job_name(name);
    0
}

/// Saves the targets now. Needed only by a program that ends without exit(3).
#[unsafe(no_mangle)]
pub extern "C" fn discnice_flush() {
    discnice_progress::testpoint::flush();
}
