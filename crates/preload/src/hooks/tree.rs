//! Walks through trees, of which libc makes the calls itself: each entry that the program is given counts as a metadata
//! operation.

use core::ffi::{c_char, c_int, c_void};
use core::mem;

use crate::calls;
use crate::real::hooks;
use crate::thread::local;

/// What nftw(3) calls for each entry; ftw(3) gives it no `place`.
type Visit = unsafe extern "C" fn(*const c_char, *const c_void, c_int, *mut c_void) -> c_int;

/// Makes a walk, by `real`, that calls the program's `theirs` through ours. A walk may begin within another one, in a signal
/// handler too; one that is left by a jump leaves a visitor behind that no later walk uses.
fn walk(theirs: *mut c_void, real: impl FnOnce(*mut c_void) -> c_int) -> c_int {
    let visitor = &local().visitor;
    let outer = visitor.replace(theirs);
    let result = real(visit as *mut c_void);
    visitor.set(outer);
    result
}

/// Counts an entry, and gives it to the program.
unsafe extern "C" fn visit(
    path: *const c_char,
    status: *const c_void,
    kind: c_int,
    place: *mut c_void,
) -> c_int {
    calls::operation(|| ());
    // SAFETY: `walk` put the program's function there, of this signature or, for ftw(3), of one that ignores the last argument.
    let theirs = unsafe { mem::transmute::<*mut c_void, Visit>(local().visitor.get()) };
    // SAFETY: libc's own arguments.
    unsafe { theirs(path, status, kind, place) }
}

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

    /// ftw(3).
    fn [ftw ftw64] (path: *const c_char, visitor: *mut c_void, descriptors: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments, with our visitor.
        walk(visitor, |visitor| unsafe { real(path, visitor, descriptors) })
    }

    /// nftw(3).
    fn [nftw nftw64] (path: *const c_char, visitor: *mut c_void, descriptors: c_int, flags: c_int) -> c_int, real => {
        // SAFETY: as above.
        walk(visitor, |visitor| unsafe { real(path, visitor, descriptors, flags) })
    }
}
