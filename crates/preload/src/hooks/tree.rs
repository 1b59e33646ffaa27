//! Walks through trees, of which libc makes the calls itself: each entry that the program is given counts as a metadata
//! operation. Walks that call the program (nftw) do not count: it may leave them by a jump or an exception.

use core::ffi::{c_int, c_void};

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// fts_read(3).
    fn [fts_read fts64_read] (tree: *mut c_void) -> *mut c_void, real,
        free by operation() => {
        // SAFETY: the program's own argument.
        calls::operation(|| unsafe { real(tree) })
    }

    /// fts_children(3).
    fn [fts_children fts64_children] (tree: *mut c_void, options: c_int) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(tree, options) })
    }
}
