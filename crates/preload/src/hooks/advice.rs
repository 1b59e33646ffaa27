//! The program's own advice about read-ahead, which ours must not overrule for good.

use core::ffi::c_int;

use discnice_regulator::Advice;

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// posix_fadvise(3).
    fn [posix_fadvise posix_fadvise64] (fd: c_int, at: i64, length: i64, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        advise(fd, advice, &|| unsafe { real(fd, at, length, advice) })
    }

    /// readahead(2).
    fn [readahead] (fd: c_int, at: i64, count: usize) -> isize, real => {
        // SAFETY: the program's own arguments.
        calls::start_io(|| unsafe { real(fd, at, count) })
    }
}

/// posix_fadvise(3), of which `real` makes the call: `POSIX_FADV_WILLNEED` reads.
#[inline(never)]
pub(super) fn advise(fd: c_int, advice: c_int, real: &dyn Fn() -> c_int) -> c_int {
    let known = match advice {
        libc::POSIX_FADV_WILLNEED => return calls::start_io(real),
        libc::POSIX_FADV_NORMAL => Some(Advice::Normal),
        libc::POSIX_FADV_SEQUENTIAL => Some(Advice::Sequential),
        libc::POSIX_FADV_RANDOM => Some(Advice::Random),
        _ => None,
    };
    let result = calls::metadata(real);
    if let (0, Some(advice)) = (result, known) {
        calls::advised(fd, advice);
    }
    result
}
