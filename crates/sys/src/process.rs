//! Facts about this process and others.

use crate::raw::{Errno, call};

/// The process id of the caller. getpid(2); right also in a child of vfork(2), where a cached
/// value would be the parent's.
#[must_use]
pub fn id() -> u32 {
    // SAFETY: no argument.
    unsafe { call!(libc::SYS_getpid) }.unwrap_or(0) as u32
}

/// The calling thread's id, or zero without /proc. By readlink(2) of /proc/thread-self, as a program's
/// own filter of system calls must allow that call anyway; the link is `PROCESS/task/THREAD`.
#[must_use]
pub fn thread() -> u32 {
    let mut link = [0u8; 64];
    let (path, to, length) = (c"/proc/thread-self".as_ptr(), link.as_mut_ptr(), link.len());
    // SAFETY: the path is a C string; the kernel writes at most the buffer's length into it.
    let read = unsafe { call!(libc::SYS_readlinkat, libc::AT_FDCWD, path, to, length) };
    let text = link.get(..read.unwrap_or(0)).unwrap_or_default();
    let digits = text.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    digits
        .iter()
        .fold(0, |id: u32, digit| id.wrapping_mul(10).wrapping_add(digit.wrapping_sub(b'0').into()))
}

/// The caller's effective user id. geteuid(2).
#[must_use]
pub fn user() -> u32 {
    // SAFETY: no argument.
    unsafe { call!(libc::SYS_geteuid) }.unwrap_or(u32::MAX as usize) as u32
}

/// Length of a thread's name with its terminating zero. `TASK_COMM_LEN`, include/linux/sched.h
pub const NAME: usize = 16;

/// The calling thread's name, as long as it is; that of its program, unless it changed it. prctl(2),
/// `PR_GET_NAME`.
#[must_use]
pub fn name() -> ([u8; NAME], usize) {
    let mut name = [0u8; NAME];
    // SAFETY: the kernel writes at most 16 bytes with a zero at the end.
    let asked = unsafe { call!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    (name, if asked.is_ok() { length } else { 0 })
}

/// Returns true if a process with this id exists (also one of another user). kill(2) with signal 0.
#[must_use]
pub fn exists(id: u32) -> bool {
    // SAFETY: signal 0 sends nothing.
    let asked = unsafe { call!(libc::SYS_kill, id, 0) };
    asked != Err(Errno::SRCH)
}

/// Returns true if a process group of this id exists (also one of another user's processes). While
/// it does, no new process gets its number. kill(2) with signal 0 and a negative id.
#[must_use]
pub fn group_exists(id: u32) -> bool {
    // SAFETY: signal 0 sends nothing.
    let asked = unsafe { call!(libc::SYS_kill, id.wrapping_neg(), 0) };
    asked != Err(Errno::SRCH)
}

/// Returns true if a process certainly has memory, and so has not ended; `false` when it has not,
/// and when the kernel does not say. move_pages(2) of no pages.
#[must_use]
pub fn has_memory(id: u32) -> bool {
    // SAFETY: no pages are given, so that nothing is read, written or moved.
    unsafe { call!(libc::SYS_move_pages, id, 0, 0, 0, 0, 0) }.is_ok()
}

/// `struct sched_attr` as of its first version. sched_setattr(2)
#[repr(C)]
#[derive(Default)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short slices of processor time for the calling thread, in nanoseconds: it gets no more of it, but sooner
/// when it wakes up among others that compute (EEVDF, Linux 6.12; ignored before). No privilege is needed. Nothing
/// is changed of a thread that is not scheduled normally. sched_setattr(2)
///
/// # Errors
/// Those of sched_getattr(2) and sched_setattr(2).
pub fn ask_for_short_slices(runtime: u64) -> Result<(), Errno> {
    let mut wanted = Scheduling::default();
    let size = size_of::<Scheduling>();
    // SAFETY: the kernel writes at most `size` bytes.
    unsafe { call!(libc::SYS_sched_getattr, 0, &raw mut wanted, size, 0)? };
    if wanted.policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    (wanted.size, wanted.flags, wanted.runtime) = (size as u32, 0, runtime);
    // SAFETY: the kernel reads `size` bytes.
    unsafe { call!(libc::SYS_sched_setattr, 0, &raw const wanted, 0)? };
    Ok(())
}

/// What the kernel charged to this process, all its threads, living and dead, and its io_uring
/// workers, since it was forked (exec(2) does not reset it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes read from devices, counted when the I/O is submitted, read-ahead included.
    pub read: u64,
    /// Bytes written, counted when a clean page is dirtied or direct I/O submitted.
    pub written: u64,
}

/// Bytes in one `ru_inblock` or `ru_oublock`. getrusage(2); kernel/sched/cputime.c.
const BLOCK: u64 = 512;

/// The process's account. getrusage(2) with `RUSAGE_SELF`.
#[must_use]
pub fn usage() -> Usage {
    account(libc::RUSAGE_SELF)
}

/// The account of the children that have ended and were waited for. getrusage(2) with
/// `RUSAGE_CHILDREN`.
#[must_use]
pub fn children_usage() -> Usage {
    account(libc::RUSAGE_CHILDREN)
}

/// The calling thread's own account. getrusage(2) with `RUSAGE_THREAD`.
#[must_use]
pub fn thread_usage() -> Usage {
    account(libc::RUSAGE_THREAD)
}

fn account(who: i32) -> Usage {
    // ru_inblock and ru_oublock are the twelfth and thirteenth word, after ru_nswap.
    rusage(who).map_or(Usage::default(), |usage| Usage {
        read: usage[11] * BLOCK,
        written: usage[12] * BLOCK,
    })
}

/// The calling thread's account, and how often it gave up the processor to wait (`ru_nvcsw`).
#[must_use]
pub fn thread_usage_and_waits() -> (Usage, u64) {
    (thread_usage(), waits())
}

/// How often the calling thread gave up the processor to wait. getrusage(2), `ru_nvcsw`.
#[must_use]
pub fn waits() -> u64 {
    waits_and_preemptions().0
}

/// Returns how often the calling thread gave up the processor to wait (`ru_nvcsw`), and how often
/// it was preempted (`ru_nivcsw`).
#[must_use]
pub fn waits_and_preemptions() -> (u64, u64) {
    // The last two words.
    rusage(libc::RUSAGE_THREAD).map_or((0, 0), |usage| (usage[16], usage[17]))
}

/// Page faults of the calling thread that had to read. getrusage(2), `ru_majflt`.
#[must_use]
pub fn major_faults() -> Option<u64> {
    rusage(libc::RUSAGE_THREAD).map(|usage| usage[MAJOR_FAULTS])
}

/// Returns the page faults that had to read of all threads of the process, living and dead, since
/// it was forked.
#[must_use]
pub fn major_faults_of_all() -> u64 {
    rusage(libc::RUSAGE_SELF).map_or(0, |usage| usage[MAJOR_FAULTS])
}

/// The word of struct rusage that counts page faults that had to read.
const MAJOR_FAULTS: usize = 9;

/// The kernel's struct rusage on 64-bit machines: two timevals of two words, then fourteen longs.
fn rusage(who: i32) -> Option<[u64; 18]> {
    let mut usage = [0u64; 18];
    // SAFETY: the kernel writes one struct rusage of 144 bytes, the size of `usage`.
    unsafe { call!(libc::SYS_getrusage, who, &raw mut usage) }.ok()?;
    Some(usage)
}
