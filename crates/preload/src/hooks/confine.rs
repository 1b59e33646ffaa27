//! prctl(2), by which a program may forbid itself system calls. seccomp(2) has no function of
//! libc's and comes through syscall(2).

use core::ffi::c_int;

use crate::confinement;
use crate::hooks::definition::hooks;

hooks! {
    /// prctl(2).
    fn [prctl] (option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int, real => {
        // SAFETY: the program's own arguments.
        confinement::by_prctl(option, a, b, || unsafe { real(option, a, b, c, d) })
    }
}
