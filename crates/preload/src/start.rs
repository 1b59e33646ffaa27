//! A program starts, and ends.

use core::ffi::{CStr, c_char, c_int};

use discnice_regulator::startup::ProgramKind;

use crate::{engine, environment, files, gated, lifecycle, real, sanitizer, stdio, valgrind};

/// The program of this process.
const OURSELVES: &CStr = c"/proc/self/exe";

/// The dynamic linker calls this before the program's own constructors, with main's arguments
/// (System V ABI, "Initialization and Termination Functions", as glibc extends it).
#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

unsafe extern "C" fn start(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    real::look_all_up();
    valgrind::leave_own_data_unchecked();
    sanitizer::give_precedence();
    if environment.is_null() {
        return;
    }
    // Nothing here would ever be called: then others hold the process, and its children find in its environment what
    // brought us here.
    let kind = discnice_regulator::startup::kind(libc::AT_FDCWD, OURSELVES.as_ptr());
    if kind.is_foreign() && kind != ProgramKind::Privileged {
        return;
    }
    // SAFETY: the environment is the one that the kernel made; the program has not started yet.
    let Some(token) = (unsafe { environment::take(environment) }) else { return };
    // SAFETY: null, or the vDSO's function, which is never unmapped.
    unsafe { discnice_sys::time::read_by(real::find(discnice_sys::time::CLOCK_NAME)) };
    engine::forget_in_child(files::inherit);
    engine::join(&token);
    gated::enter();
    stdio::enter();
    lifecycle::arrive();
}

extern "C" fn end() {
    lifecycle::leave();
}
