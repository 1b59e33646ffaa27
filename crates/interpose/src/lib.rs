//! The parts of `libdiscnice.so` that can be tested without being preloaded.
//!
//! The library itself (`discnice-preload`) cannot carry a test harness, because it takes the place of libc's functions. What it
//! decides by arithmetic, by reading or by writing memory is here, under the rules of the library: no allocation, no panic, no lock
//! over a call, errno unchanged, all of it safe in a signal handler and between fork and exec.
//!
//! - `environment`: how the library gets from a program into its children;
//! - `filter`: what a filter of system calls answers to a call;
//! - `needs`: what the library loses where a program forbids itself a system call;
//! - `set`: a set of descriptors;
//! - `symbols`: finds functions behind ours;
//! - `timeout`: how long a program wants to wait;
//! - `table`: something for each descriptor, by its number.
#![cfg_attr(not(test), no_std)]

pub mod environment;
pub mod filter;
pub mod needs;
pub mod set;
pub mod symbols;
pub mod table;
pub mod timeout;
