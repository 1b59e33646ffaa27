//! The Linux system calls that DiscNice itself makes inside other people's programs.
//!
//! They go to the kernel directly. Three reasons, each of them a promise to the program:
//! - `errno` is the program's; a call through libc would change it;
//! - libc's functions may be interposed, by us or by another library, and would recurse;
//! - everything here may run in a signal handler and between fork and exec.
//!
//! A wrapper is one system call, its documentation starts with the C signature's meaning and
//! names the man page. Failure is an [`Errno`], never a panic.
#![cfg_attr(not(test), no_std)]
#![allow(unsafe_code, reason = "this crate is the boundary to the kernel")]

pub mod block;
pub mod cycles;
pub mod deadline;
pub mod epoll;
pub mod execution;
pub mod extents;
pub mod file;
pub mod futex;
pub mod gate;
mod lines;
pub mod mapped;
pub mod memory;
pub mod opened;
pub mod pagecache;
pub mod pressure;
pub mod process;
pub mod procfs;
mod raw;
pub mod residency;
pub mod seccomp;
pub mod shm;
pub mod signal;
pub mod socket;
pub mod tcp;
pub mod time;
pub mod trace;
pub mod traffic;
pub mod valgrind;

pub use raw::{Errno, Syscall, syscall};
