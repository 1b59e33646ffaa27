//! libc's functions, by family.
//!
//! Functions with a variable argument list (`open`, `fcntl`, `syscall`…) are defined here with
//! all the arguments they can have. On the machines we support a caller passes variable integer
//! arguments exactly where a function with fixed ones finds them (System V ABI for x86-64, 3.2.3;
//! AAPCS64, 6.4.2); one that was not passed is garbage in a register, which the real function
//! ignores as it always did. docs/adr/0004.

mod advice;
mod close;
mod confine;
mod copy;
mod definition;
mod directory;
mod exec;
mod inode;
mod link;
mod memory;
mod names;
mod net;
mod numbers;
mod open;
mod print;
mod raw;
mod read;
mod spawn;
mod sync;
mod tree;
mod wait;
mod write;
