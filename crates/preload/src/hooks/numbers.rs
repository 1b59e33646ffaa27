//! What calls do with names, by their numbers: syscall(2) makes them as the hooks of the functions do.

use core::ffi::{c_char, c_int, c_long};

use discnice_sys::memory;

use crate::calls;

/// What a call does with a name: a path, and before it the directory that it is below.
#[derive(Clone, Copy)]
enum Deed {
    /// Nothing, as it has none.
    Nothing,
    /// Asks about it.
    Asks,
    /// Looks it up.
    Looks(c_int, usize),
    /// Changes it, or what it stands for.
    Changes(c_int, usize),
    /// Takes it off a file.
    Deletes(c_int, usize),
    /// Opens it, with these flags of open(2).
    Opens(c_int, usize, c_int),
    /// Cuts the file of this path to this length.
    Cuts(usize, i64),
}

/// The number of fchmodat2(2), the same on all architectures.
const FCHMODAT2: c_long = 452;

/// The table of the calls that are about names.
#[inline(always)]
fn deed(number: c_long, [a, b, c, d, e]: [usize; 5]) -> Deed {
    use Deed::{Asks, Changes, Cuts, Deletes, Looks, Opens};
    const HERE: c_int = libc::AT_FDCWD;
    let (at, to) = (a as c_int, c as c_int);
    match number {
        libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_readlinkat => Looks(at, b),
        libc::SYS_getxattr
        | libc::SYS_lgetxattr
        | libc::SYS_listxattr
        | libc::SYS_llistxattr
        | libc::SYS_statfs => Asks,
        libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_fchmodat
        | FCHMODAT2
        | libc::SYS_fchownat
        | libc::SYS_utimensat => Changes(at, b),
        libc::SYS_setxattr
        | libc::SYS_lsetxattr
        | libc::SYS_removexattr
        | libc::SYS_lremovexattr => Changes(HERE, a),
        libc::SYS_symlinkat => Changes(b as c_int, c),
        libc::SYS_linkat => Changes(to, d),
        libc::SYS_renameat2 if e as u32 & libc::RENAME_EXCHANGE != 0 => Changes(to, d),
        libc::SYS_renameat | libc::SYS_renameat2 => Deletes(to, d),
        libc::SYS_unlinkat => Deletes(at, b),
        libc::SYS_truncate => Cuts(a, b as i64),
        libc::SYS_openat => Opens(at, b, c as c_int),
        libc::SYS_openat2 => {
            // A struct open_how begins with the flags.
            Opens(at, b, memory::word(c).unwrap_or(0) as c_int)
        }
        _ => old(number, [a, b]),
    }
}

/// The part of the table for calls with names relative to the working directory alone, which newer machines have no numbers for.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn old(number: c_long, [a, b]: [usize; 2]) -> Deed {
    use Deed::{Changes, Deletes, Looks, Nothing, Opens};
    const HERE: c_int = libc::AT_FDCWD;
    match number {
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink => Looks(HERE, a),
        libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_mknod
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_lchown
        | libc::SYS_utime
        | libc::SYS_utimes => Changes(HERE, a),
        libc::SYS_link | libc::SYS_symlink => Changes(HERE, b),
        libc::SYS_unlink => Deletes(HERE, a),
        libc::SYS_rename => Deletes(HERE, b),
        libc::SYS_open => Opens(HERE, a, b as c_int),
        libc::SYS_creat => Opens(HERE, a, libc::O_TRUNC),
        _ => Nothing,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn old(_: c_long, _: [usize; 2]) -> Deed {
    Deed::Nothing
}

/// Makes a call by its number, as its hook by name would if it is about a name.
#[inline(always)]
pub(super) fn make(number: c_long, arguments: [usize; 5], call: impl FnOnce() -> c_long) -> c_long {
    let name = |path: usize| path as *const c_char;
    match deed(number, arguments) {
        Deed::Nothing => call(),
        Deed::Asks => calls::operation(call),
        Deed::Looks(at, path) => calls::look(at, name(path), call),
        Deed::Changes(at, path) => calls::change(at, name(path), call),
        Deed::Deletes(at, path) => calls::delete(at, name(path), || call() as c_int).into(),
        Deed::Opens(at, path, flags) => {
            calls::open_named(at, name(path), flags, || call() as c_int).into()
        }
        Deed::Cuts(path, length) => {
            calls::truncate_named(name(path), length, || call() as c_int).into()
        }
    }
}
