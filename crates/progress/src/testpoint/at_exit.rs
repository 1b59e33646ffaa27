//! Saving at the process's end.
#![allow(unsafe_code, reason = "registers a handler with atexit(3)")]

/// Calls `handler` when the process ends by exit(3) or by returning from main.
pub fn register(handler: extern "C" fn()) {
    // SAFETY: atexit(3) only stores the pointer, and the function is never unloaded before the
    // handlers run: glibc runs a shared object's handlers before it unloads it.
    let _ = unsafe { libc::atexit(handler) };
}
