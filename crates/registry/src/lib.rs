//! Finds a user's classes and their blocks.
//!
//! A class is a [block](discnice_sys::block) of shared memory. What blocks this user has is known
//! from places that no other user can write: the kernel's list of System V segments, of which only
//! those count that this user *made*, and the user's private directory, for blocks that are files.
//! The name stands in the block itself. For a class with a name given by a person, an [`entry`] in
//! the private directory leads from name to block, so that two commands that name the same class at
//! once get the same one, and keeps its limits for programs of another version.
//!
//! - [`name`]: which names classes may have;
//! - `store`: makes, lists and maps blocks;
//! - [`entry`]: what leads from a name to a block;
//! - [`class`]: one class and its block;
//! - `abandoned`: which classes no process uses any more;
//! - [`classes`]: classes by name, and all of them;
//! - [`board`]: what the classes know together of the others' traffic.
//!
//! # Trust
//! Every block is checked where it is mapped ([`discnice_sys::block`]), however its name was
//! learnt: its creator, its owner, its mode, its length, its version. An entry is input: it is
//! trusted only as far as the block agrees.

mod abandoned;
pub mod board;
pub mod class;
pub mod classes;
pub mod entry;
pub mod name;
mod store;

pub use board::MappedBoard;
pub use class::MappedClass;
pub use classes::Origin;
