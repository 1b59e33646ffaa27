//! What the kernel says about executing a file.

use core::mem::MaybeUninit;

use crate::raw::call;
use crate::{file, process};

/// The extended attribute that holds a file's capabilities. capabilities(7)
const CAPABILITIES: &core::ffi::CStr = c"security.capability";

/// Returns true if this process would run the program behind a descriptor with other rights than
/// its own, so that the dynamic linker preloads nothing: the file is set-user-ID to another user,
/// set-group-ID, or has capabilities (ld.so(8), "Secure-execution mode"). Also true on a mount that
/// ignores those (`nosuid`); false in a process that cannot gain any. fstat(2), fgetxattr(2)
#[must_use]
pub fn gains_rights(fd: i32) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills one struct stat of the native layout, which libc declares.
    if unsafe { call!(libc::SYS_fstat, fd, stat.as_mut_ptr()) }.is_err() {
        return false;
    }
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    let stat = unsafe { stat.assume_init() };
    let (user, with_group) = (process::user(), libc::S_ISGID | libc::S_IXGRP);
    let by_user = stat.st_mode & libc::S_ISUID != 0 && stat.st_uid != user;
    let by_group = stat.st_mode & with_group == with_group;
    let gains = by_user || by_group || user != 0 && has_capabilities(fd);
    gains && !is_barred()
}

/// Returns true if this process gains no rights by executing anything (`PR_GET_NO_NEW_PRIVS`,
/// prctl(2)). Not asked below a filter of the program's own, which may forbid the question.
fn is_barred() -> bool {
    if file::is_statx_forgone() {
        return false;
    }
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == Ok(1) }
}

/// Not asked below a filter of the program's own, which may forbid the question.
fn has_capabilities(fd: i32) -> bool {
    if file::is_statx_forgone() {
        return false;
    }
    // SAFETY: the name is a C string; a size of zero asks for the value's size alone.
    let size = unsafe { call!(libc::SYS_fgetxattr, fd, CAPABILITIES.as_ptr(), 0, 0) };
    size.is_ok_and(|size| size > 0)
}

/// The kernel's `struct statfs` of 64-bit machines (include/uapi/asm-generic/statfs.h), of which libc's declaration lacks
/// the flags: fifteen words, the eleventh of which they are.
const STATFS: usize = 15;
const FLAGS: usize = 10;
/// `ST_NOEXEC` in them (include/linux/statfs.h).
const NO_EXECUTION: u64 = 0x8;

/// Returns true if nothing on the mount of a descriptor's file may be mapped executable, as far as
/// a filter of the program's own allows us to ask. fstatfs(2)
#[must_use]
pub fn is_forbidden(fd: i32) -> bool {
    if file::is_statx_forgone() {
        return false;
    }
    let mut answer = [0u64; STATFS];
    // SAFETY: the kernel fills one struct statfs, which has this size.
    let asked = unsafe { call!(libc::SYS_fstatfs, fd, answer.as_mut_ptr()) };
    asked.is_ok() && answer.get(FLAGS).is_some_and(|flags| flags & NO_EXECUTION != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::Opened;

    fn open(path: &core::ffi::CStr) -> Opened {
        Opened::open(libc::AT_FDCWD, path.as_ptr()).unwrap()
    }

    #[test]
    fn ordinary_programs_gain_nothing_and_may_be_executed() {
        let program = open(c"/bin/sh");
        assert!(!gains_rights(program.fd()));
        assert!(!is_forbidden(program.fd()));
    }

    #[test]
    fn what_is_no_file_of_programs_is_on_a_mount_that_says_so() {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let options = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some("/proc")).unwrap();
        assert_eq!(is_forbidden(open(c"/proc/version").fd()), options.contains("noexec"));
    }
}
