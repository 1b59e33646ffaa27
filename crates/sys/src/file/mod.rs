//! What the regulator asks and tells the kernel about one descriptor.
//!
//! A descriptor may be closed or become another file at any moment: it is the program's, not
//! ours. Every call here is harmless on whatever it has become.

mod contents;
mod file_system;
mod pages;
mod status;

pub use contents::{read_all, read_small, read_small_at};
pub use file_system::{
    commit, is_in_memory, is_local, is_local_mount, is_on_overlay, takes_commands,
};
pub use pages::{
    advise, advise_range, await_read, flags, is_duplicate, position, read_ahead, start_write_back,
    write_through,
};
pub use status::{
    FileKind, Status, age, forgo_statx, is_statx_forgone, status, status_as_known, status_at,
    status_behind, status_now, status_of_parent,
};
