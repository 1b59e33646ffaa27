//! `libdiscnice.so`: the regulator inside a program.
//!
//! We are guests here. Nothing in this library exits, panics, prints, allocates, holds a
//! descriptor or a lock over a call, or changes errno; all of it may run in a signal handler and
//! between fork and exec. If anything of ours is missing, the program's call simply happens.
//!
//! Where things are:
//! - `hooks`: one file for each family of libc's functions: decode, decide, real call;
//! - `calls`: the few shapes that such calls have (read, write, copy, metadata);
//! - `engine`: the regulator of this process, and what happens to it at fork;
//! - `lifecycle`: the process starts, becomes another program, ends;
//! - `descriptors`, `thread`: state of a descriptor and of a thread;
//! - `files`: a descriptor gets another meaning;
//! - `net`: sockets, and waiting until they are ready;
//! - `confinement`: programs that forbid themselves system calls;
//! - `mappings`: mapped files with page faults that must be predicted;
//! - `environment`, `start`: how the library gets into a program and its children;
//! - `loading`: programs and libraries are read before they are loaded;
//! - `faults`: page faults of mapped files read no read-ahead windows;
//! - `stdio`: how it gets below libc's own buffers;
//! - `real`: libc's functions behind ours;
//! - `free`: the calls that go straight there;
//! - `gated`: how calls leave below a filter of ours;
//! - `sanitizer`: programs that check which library comes first;
//! - `trace`: records of calls, while something reads them.
//!
//! What needs no hook, no class and no thread of the program is in `discnice-interpose`, with unit tests.
//!
//! # Safety
//! The whole library is a boundary: its functions are called by other people's code with
//! pointers that it cannot check. It never looks through such a pointer where the kernel could
//! answer EFAULT; it passes them on. Environment blocks, which the kernel reads only after us, are
//! looked at after asking the kernel whether they can be read.
// Where panics unwind, only the standard library has what the compiler asks for: in development builds, which nothing is
// tested with.
#![cfg_attr(panic = "abort", no_std)]
#![allow(unsafe_code, reason = "libc's functions take and give raw pointers")]

mod calls;
mod confinement;
mod descriptors;
mod engine;
mod environment;
mod faults;
mod files;
mod free;
mod gated;
mod hooks;
mod known;
mod lifecycle;
mod loading;
mod mappings;
mod net;
mod outside;
mod real;
mod sanitizer;
mod start;
mod stdio;
mod thread;
mod trace;
mod valgrind;

// Satisfies the linker where nothing has dropped the unwinding tables of `core`, which name it: without it a library that is not
// optimised as a whole could not be loaded. Nothing here unwinds.
core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality, \"ax\"",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    ".popsection",
);

/// Satisfies the compiler; no code of ours can panic: `cargo xtask check-symbols` finds no
/// panicking function in the optimised library, from which the linker has dropped this one too.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
