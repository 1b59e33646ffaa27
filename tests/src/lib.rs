//! What the tests of the whole product share.
//!
//! - [`product`]: where `discnice` lies, and commands under it;
//! - [`process`]: running a command to its end, with everything that can be told apart;
//! - [`attaching`]: processes to attach, and what a refusal says;
//! - [`bare`]: runs that are compared, with and without limits;
//! - [`guest`]: small C programs that are compiled when a test needs them;
//! - [`bus`]: a message bus with services that a script plays;
//! - [`class`]: a class of a test's own, removed when the test ends;
//! - [`failing`]: the product while system calls or allocations of it fail;
//! - [`faults`]: which system calls fail with what;
//! - [`fleet`]: a budget that several classes share, as machines do, with its server;
//! - [`readers`]: programs that read without end, and files for them;
//! - [`cold`]: files that are on the disk and not in the page cache;
//! - [`segment`]: a class's shared memory, to do harm to it;
//! - [`served`]: a file system that a daemon serves, and that hangs;
//! - [`together`]: cases that mostly wait, several at a time.
//!
//! Everything runs as the current user; the superuser runs guests as an ordinary one, because the
//! product is meant for such users. A test that lacks something says so with [`skip!`] and ends.

pub mod attaching;
pub mod bare;
pub mod bus;
pub mod class;
pub mod cold;
pub mod failing;
pub mod faults;
pub mod fleet;
pub mod guest;
pub mod process;
pub mod product;
pub mod readers;
pub mod segment;
pub mod served;
pub mod together;

pub use discnice_requirements::{skip, skipped};
