//! The emulated disk: a slow disk of the papers' day, made of memory.
//!
//! ```text
//! program → ext4 → page cache → I/O scheduler → loop device → FUSE → head thread → memory
//!                               (queue depth 4)  (direct I/O)   (model: seek, rotation, transfer)
//! ```
//!
//! `model.rs` says when a disk would answer, `head.rs` answers then, `filesystem.rs` and
//! `server.rs` connect it to the kernel, `up.rs` and `down.rs` make and remove all of it.

mod command;
mod control;
mod device;
mod down;
mod drop_caches;
mod filesystem;
mod head;
mod model;
mod mounts;
mod profile;
mod server;
mod state;
mod stats;
mod up;

pub use command::DiskCommand;
pub use state::Owner;
