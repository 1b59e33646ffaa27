//! Tells whether a process does its I/O where no call of its own stands for it. Exists for `eval/benches/escapes.py`, rows `scanner`, `ripgrep mmap`
//! and those of io_uring.
//!
//! `/proc/PID/task/TID/syscall` says in which call a thread sleeps, or that it sleeps in none: in a page
//! fault. proc_pid_syscall(5)

use discnice_sys::procfs;

use crate::process::{self, Call};

/// What the threads of a process that moved bytes are seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// One is in a call that moves bytes, for which a library in it reserves and settles.
    Call,
    /// One sleeps in a page fault, waits for what the kernel does by itself (io_uring, aio), or is the kernel's
    /// worker for that; none is in a call.
    Unseen,
    /// It runs, or is not to be looked at.
    Unknown,
}

/// Calls that move bytes by themselves.
const MOVING: [i64; 25] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_readahead,
    libc::SYS_fadvise64,
    libc::SYS_madvise,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_ioctl,
    libc::SYS_mmap,
    libc::SYS_execve,
    libc::SYS_execveat,
];
/// Calls that wait for what the kernel moves meanwhile.
const WAITING: [i64; 3] = [libc::SYS_io_uring_enter, libc::SYS_io_getevents, libc::SYS_io_submit];

impl Doing {
    /// Looks at all threads of process `id`.
    #[must_use]
    pub fn of(id: u32) -> Self {
        let mut doing = Self::Unknown;
        if procfs::is_executing(id) {
            return doing;
        }
        for thread in process::threads(id) {
            if procfs::stat_unguarded(thread).is_some_and(|stat| stat.flags & process::WORKER != 0)
            {
                doing = Self::Unseen;
                continue;
            }
            match process::call(id, thread).map_or(Self::Unknown, Self::in_call) {
                Self::Call => return Self::Call,
                Self::Unseen => doing = Self::Unseen,
                Self::Unknown => {}
            }
        }
        doing
    }

    fn in_call(call: Call) -> Self {
        match call.number {
            number if MOVING.contains(&number) => Self::Call,
            number if number < 0 || WAITING.contains(&number) => Self::Unseen,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn calls_are_told_from_faults() {
        let doing = |number| Doing::in_call(Call { number, arguments: [0; 6] });
        assert_eq!(doing(-1), Doing::Unseen);
        assert_eq!(doing(libc::SYS_pread64), Doing::Call);
        assert_eq!(doing(libc::SYS_io_uring_enter), Doing::Unseen);
        assert_eq!(doing(libc::SYS_futex), Doing::Unknown);
    }

    #[test]
    fn a_process_that_waits_for_a_pipe_is_in_a_call() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let seen = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Doing::of(child.id()) == Doing::Call
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen);
    }
}
