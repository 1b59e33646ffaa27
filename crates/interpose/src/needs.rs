//! What the library loses where a program forbids itself a system call.

use core::ffi::c_long;

/// How much a system call is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A process to which it is refused cannot be regulated.
    Always,
    /// It may fail.
    IfPossible,
    /// Without it only traffic is not regulated.
    ForTraffic,
    /// Another call takes its place.
    Replaceable,
}

impl Need {
    /// How much the call of this number is needed. One that nothing is known about is needed always.
    #[must_use]
    pub const fn of(number: u16) -> Self {
        match number as c_long {
            libc::SYS_statx => Self::Replaceable,
            CACHESTAT
            | libc::SYS_fadvise64
            | libc::SYS_fdatasync
            | libc::SYS_fgetxattr
            | libc::SYS_fstatfs
            | libc::SYS_getrusage
            | libc::SYS_madvise
            | libc::SYS_mincore
            | libc::SYS_newfstatat
            | libc::SYS_prctl
            | libc::SYS_readahead
            | libc::SYS_sync_file_range => Self::IfPossible,
            libc::SYS_epoll_ctl
            | libc::SYS_getpeername
            | libc::SYS_getsockname
            | libc::SYS_getsockopt
            | libc::SYS_ioctl
            | libc::SYS_rt_sigaction
            | libc::SYS_setsockopt => Self::ForTraffic,
            _ => Self::Always,
        }
    }
}

/// cachestat(2)
const CACHESTAT: c_long = 451;
