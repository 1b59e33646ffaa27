//! The processor's time-stamp counter: the cheapest clock there is, for telling a call that
//! only copied memory from one that did more.

/// The counter's value now; its unit differs between machines.
#[inline(always)]
#[must_use]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has rdtsc. A program may have forbidden it to itself with
    // prctl(PR_SET_TSC), which only deterministic recorders do; they do not run under us.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: Linux lets user space read the virtual counter.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack));
        }
        // The counter runs at 24 MHz to 1 GHz; scaled so that the thresholds in cycles fit.
        value << 5
    }
}
