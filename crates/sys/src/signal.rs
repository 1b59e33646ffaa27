//! What the process does when a signal comes. signal(7).

use crate::raw::call;

/// Signals are numbered from one.
const SIGNALS: core::ops::RangeInclusive<i32> = 1..=64;
/// The thread library's own: cancelling a thread and changing user ids.
const LIBRARYS: core::ops::RangeInclusive<i32> = 32..=33;

/// The kernel's struct sigaction on 64-bit machines.
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    /// `sa_restorer` on x86-64; elsewhere the mask begins here.
    _rest: [u64; 2],
}

/// Returns true if a signal handler could have run that makes blocking calls fail with `EINTR`: one
/// without `SA_RESTART`. Which handler ran cannot be known afterwards. rt_sigaction(2).
#[must_use]
pub fn any_interrupts() -> bool {
    let ours = SIGNALS.filter(|signal| !LIBRARYS.contains(signal));
    ours.into_iter().any(|signal| {
        let mut old = Action { handler: 0, flags: 0, _rest: [0; 2] };
        let (size, old_action) = (size_of::<u64>(), &raw mut old);
        // SAFETY: the kernel writes one struct sigaction, and changes nothing.
        let asked = unsafe { call!(libc::SYS_rt_sigaction, signal, 0, old_action, size) };
        let handled = old.handler != libc::SIG_DFL && old.handler != libc::SIG_IGN;
        asked.is_ok() && handled && old.flags & libc::SA_RESTART as u64 == 0
    })
}
