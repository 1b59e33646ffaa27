//! A deadline that a process sets for itself: if it is stopped, or hangs, the kernel kills it.
//!
//! A process that holds others should die rather than stop together with them. A kernel timer
//! (timer_create(2)) that sends SIGKILL keeps running while its process is stopped, and SIGKILL
//! kills a stopped process. Its death releases what it held: the kernel releases the processes it
//! traced, helper processes the others.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use discnice_units::{Moment, Nanos};

use crate::raw::{Errno, call};
use crate::time;

/// Time without a sign of life after which a process is killed.
const AFTER: Nanos = Nanos::from_millis(350);
/// Interval at which the process should show that it is alive; each time takes a system call, so
/// more often is of no use.
pub const OFTEN: Nanos = Nanos::from_millis(50);
/// Value of [`TIMER`] for no timer.
const NONE: i32 = -1;

/// The kernel's number of the timer. A child of fork(2) inherits no timers: see [`begin`].
static TIMER: AtomicI32 = AtomicI32::new(NONE);
/// Time when the timer was last set; zero while it is not.
static SET: AtomicU64 = AtomicU64::new(0);

/// Enables deadlines in this process; [`arm`] then sets one. Called once in each process, and again
/// in a child of a process that has called it.
///
/// # Errors
/// `EAGAIN` when the kernel has no timers left; then there are no deadlines.
pub fn begin() -> Result<(), Errno> {
    SET.store(0, Ordering::Relaxed);
    TIMER.store(NONE, Ordering::Relaxed);
    // struct sigevent, 64 bytes: a value, the signal's number, `SIGEV_SIGNAL` (zero). sigevent(3type)
    let mut event = [0i32; 16];
    event[2] = libc::SIGKILL;
    let mut timer = NONE;
    let (clock, event) = (libc::CLOCK_MONOTONIC, event.as_ptr());
    // SAFETY: the kernel reads one sigevent and writes one number, both of which live here.
    unsafe { call!(libc::SYS_timer_create, clock, event, &raw mut timer)? };
    TIMER.store(timer, Ordering::Relaxed);
    Ok(())
}

/// Returns true if this process may have deadlines.
#[must_use]
pub fn has_begun() -> bool {
    TIMER.load(Ordering::Relaxed) != NONE
}

/// Returns true if this process has a deadline now.
#[must_use]
pub fn is_armed() -> bool {
    SET.load(Ordering::Relaxed) > 0
}

/// Sets the deadline; call before something is held.
pub fn arm() {
    if !has_begun() {
        return;
    }
    let (now, set) = (time::now(), Moment(SET.load(Ordering::Relaxed)));
    if set.0 == 0 || now >= set.plus(OFTEN) {
        SET.store(now.0, Ordering::Relaxed);
        set_timer(AFTER);
    }
}

/// Puts the deadline off, if there is one.
pub fn renew() {
    if is_armed() {
        arm();
    }
}

/// There is no deadline any more: nothing is held.
pub fn disarm() {
    if SET.swap(0, Ordering::Relaxed) > 0 {
        set_timer(Nanos(0));
    }
}

/// Ends this process at once, as its deadline would: it holds something that it cannot let go, and only its death does.
pub fn expire() {
    // SAFETY: numbers only.
    let _ = unsafe { call!(libc::SYS_kill, crate::process::id(), libc::SIGKILL) };
}

/// Zero for never.
fn set_timer(after: Nanos) {
    let timer = TIMER.load(Ordering::Relaxed);
    let time = [
        0,
        0,
        (after.0 / Nanos::SECOND.0).cast_signed(),
        (after.0 % Nanos::SECOND.0).cast_signed(),
    ];
    // SAFETY: the kernel reads one itimerspec, two timespecs of two words.
    let _ = unsafe { call!(libc::SYS_timer_settime, timer, 0, time.as_ptr(), 0) };
}
