//! dlopen(3): a library is loaded, with all that it needs.
//!
//! What dlopen finds, and into which namespace it loads, depends on its caller, which it knows by
//! the address that it returns to. So these hooks leave no frame behind: they call us, and then
//! jump to libc's function as if they had never been there. docs/adr/0012.

use core::ffi::{c_char, c_int, c_void};

use crate::loading;
use crate::real::{Real, reals};

reals! {
    DLOPEN = c"dlopen";
    DLMOPEN = c"dlmopen";
}

/// Brings in what loading this library reads; returns libc's function.
unsafe extern "C" fn before_dlopen(name: *const c_char) -> *mut c_void {
    // SAFETY: the program's own argument, a C string or null.
    unsafe { loading::library(name) };
    real(&DLOPEN)
}

/// Brings in what loading this library into another namespace reads; returns libc's function.
unsafe extern "C" fn before_dlmopen(_namespace: isize, name: *const c_char) -> *mut c_void {
    // SAFETY: as above.
    unsafe { loading::library(name) };
    real(&DLMOPEN)
}

fn real(function: &Real) -> *mut c_void {
    if function.exists() { function.get() } else { none as *mut c_void }
}

/// Stands for a function that this libc does not have: no library was loaded.
extern "C" fn none() -> *mut c_void {
    core::ptr::null_mut()
}

/// Calls `before` with the arguments and continues with the function that it returned, with the
/// arguments and the return address of the call. Neither function takes vector arguments.
macro_rules! passing_hook {
    ($(#[$meta:meta])* $name:ident ($($argument:ident : $type:ty),*) => $before:ident) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            // Three words and the return address: the stack is aligned at the call.
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {before}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                before = sym $before,
            )
        }

        $(#[$meta])*
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, -48]!",
                "stp x0, x1, [sp, 16]",
                "str x2, [sp, 32]",
                "bl {before}",
                "mov x16, x0",
                "ldp x0, x1, [sp, 16]",
                "ldr x2, [sp, 32]",
                "ldp x29, x30, [sp], 48",
                "br x16",
                before = sym $before,
            )
        }
    };
}

passing_hook! {
    /// dlopen(3).
    dlopen(name: *const c_char, flags: c_int) => before_dlopen
}
passing_hook! {
    /// dlmopen(3).
    dlmopen(namespace: isize, name: *const c_char, flags: c_int) => before_dlmopen
}
