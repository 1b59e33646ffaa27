//! The clock of the ledger.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use discnice_units::{Moment, Nanos};

use crate::raw::call;

/// clock_gettime(2) as a function.
type Clock = unsafe extern "C" fn(i32, *mut [i64; 2]) -> i32;

/// Its name in the vDSO, vdso(7).
pub const CLOCK_NAME: &CStr =
    if cfg!(target_arch = "aarch64") { c"__kernel_clock_gettime" } else { c"__vdso_clock_gettime" };

/// The vDSO's, which need not enter the kernel; null if unknown.
static CLOCK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Reads the clock by this function from now on; null for the system call.
///
/// # Safety
/// It is null, or what the vDSO has as [`CLOCK_NAME`] or libc as clock_gettime(2), and stays mapped.
pub unsafe fn read_by(clock: *mut c_void) {
    CLOCK.store(clock, Ordering::Relaxed);
}

/// `CLOCK_MONOTONIC` now: it stands still while the machine is suspended, and no administrator
/// can set it. clock_gettime(2).
#[must_use]
pub fn now() -> Moment {
    let mut spec = [0i64; 2];
    let clock = CLOCK.load(Ordering::Relaxed);
    if !clock.is_null() {
        // SAFETY: the caller of `read_by` vouches that it is this function.
        let clock = unsafe { transmute::<*mut c_void, Clock>(clock) };
        // SAFETY: it writes one timespec of two 64-bit numbers into `spec`.
        if unsafe { clock(libc::CLOCK_MONOTONIC, &raw mut spec) } == 0 {
            return Moment(nanos(spec).0);
        }
    }
    // SAFETY: the kernel writes one timespec of two 64-bit numbers into `spec`.
    let done = unsafe { call!(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut spec) };
    if done.is_err() {
        return Moment::FIRST;
    }
    Moment(nanos(spec).0)
}

/// Processor time that all threads of a process have had so far, the kernel's workers of its io_uring among
/// them; it is entered when a thread stops running, and at each tick. `None` when there is no such process. No
/// privilege is needed. clock_getcpuclockid(3)
#[must_use]
pub fn of_process(id: u32) -> Option<Nanos> {
    /// `CPUCLOCK_SCHED` of include/linux/posix-timers_types.h, for a process.
    const RUN: i32 = 2;
    let clock = !id.cast_signed() << 3 | RUN;
    let mut spec = [0i64; 2];
    // SAFETY: the kernel writes one timespec of two 64-bit numbers into `spec`.
    unsafe { call!(libc::SYS_clock_gettime, clock, &raw mut spec) }.ok()?;
    Some(nanos(spec))
}

const fn nanos([seconds, rest]: [i64; 2]) -> Nanos {
    Nanos(seconds as u64 * Nanos::SECOND.0 + rest as u64)
}
