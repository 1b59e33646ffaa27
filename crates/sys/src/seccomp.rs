//! Filters of system calls that ask another process before a call is made. seccomp(2),
//! seccomp_unotify(2).

use core::ptr;

use crate::raw::{Errno, call};

/// One instruction of classic BPF, `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions skipped if its comparison holds.
    pub then: u8,
    /// Instructions skipped otherwise.
    pub otherwise: u8,
    /// Its constant.
    pub value: u32,
}

/// A call as the filter and the supervisor see it, `struct seccomp_data`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call {
    /// Its number.
    pub number: i32,
    /// Architecture that the number belongs to: one of `AUDIT_ARCH_*`.
    pub architecture: u32,
    /// Address of the call.
    pub instruction: u64,
    /// What the registers hold; pointers are claims of another process.
    pub arguments: [u64; 6],
}

/// A call that waits for its supervisor, `struct seccomp_notif`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notification {
    /// Tells it from all others of its listener; never zero.
    pub id: u64,
    /// The thread that waits, as a number of the supervisor's PID namespace; 0 if it is not in it.
    pub thread: u32,
    /// None is defined.
    pub flags: u32,
    /// The call.
    pub call: Call,
}

/// The native `AUDIT_ARCH_*`.
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: u32 = 0xc000_003e;
/// The native `AUDIT_ARCH_*`.
#[cfg(target_arch = "aarch64")]
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// A call that was received can be interrupted by a fatal signal only. Without it a timer that
/// fires more often than the supervisor answers keeps a call from ever being made. Linux 5.19.
const WAIT_KILLABLE_RECV: usize = 1 << 5;
/// Flags of every filter of ours.
const FLAGS: usize = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as usize | WAIT_KILLABLE_RECV;

/// `SECCOMP_IOCTL_NOTIF_RECV`, `_SEND` and `_ID_VALID` (linux/seccomp.h).
const RECEIVE: usize = 0xc050_2100;
const SEND: usize = 0xc018_2101;
const ID_VALID: usize = 0x4008_2102;
const SET_FLAGS: usize = 0x4008_2104;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`, Linux 5.5.
const CONTINUE: u32 = 1;

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// Checks that [`install`] can work here, without changing anything.
///
/// # Errors
/// `ENOSYS` without seccomp; `EINVAL` before Linux 5.19; `EOPNOTSUPP` without user notification.
pub fn probe() -> Result<(), Errno> {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads one number.
    unsafe { call!(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)? };
    // The flags are looked at before the program, which is not there.
    let none = ptr::null::<Program>();
    // SAFETY: without a program no filter is installed.
    match unsafe { call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, FLAGS, none) } {
        Err(Errno(libc::EFAULT)) | Ok(_) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Returns true if the calling thread is below a filter already. prctl(2), `PR_GET_SECCOMP`.
#[must_use]
pub fn is_filtered() -> bool {
    const FILTER: usize = libc::SECCOMP_MODE_FILTER as usize;
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_prctl, libc::PR_GET_SECCOMP, 0, 0, 0, 0) }
        .is_ok_and(|mode| mode == FILTER)
}

/// Gives up gaining rights by executing programs (setuid, capabilities), for ever and for all
/// children: without it only the superuser may install a filter. prctl(2),
/// `PR_SET_NO_NEW_PRIVS`.
///
/// # Errors
/// `EINVAL` before Linux 3.5.
pub fn renounce_privileges() -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.map(drop)
}

/// Installs a filter in the calling thread, for ever and for all its children; returns the
/// descriptor, closed on exec, by which its notifications are received.
///
/// # Errors
/// `EBUSY` when a filter with a listener is there already, `EACCES` without
/// [`renounce_privileges`], and those of [`probe`].
pub fn install(instructions: &[Instruction]) -> Result<i32, Errno> {
    let length = u16::try_from(instructions.len()).map_err(|_| Errno(libc::EINVAL))?;
    let program = Program { length, instructions: instructions.as_ptr() };
    let program = &raw const program;
    // SAFETY: the kernel copies the program, which outlives the call.
    unsafe { call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, FLAGS, program) }
        .map(|fd| fd as i32)
}

/// Receives a notification into `slot`, which must be all zeroes; waits if there is none.
///
/// A receiver that is killed in here still finishes: a process that finds the slot zero after its
/// death has lost nothing.
///
/// # Errors
/// `ENOENT` when the caller went away meanwhile, `EINTR`.
pub fn receive(listener: i32, slot: &mut Notification) -> Result<(), Errno> {
    // SAFETY: the kernel writes one notification.
    unsafe { call!(libc::SYS_ioctl, listener, RECEIVE, ptr::from_mut(slot)) }.map(drop)
}

/// Lets the call be made as if there were no filter.
///
/// # Errors
/// `ENOENT` when the caller went away meanwhile, or is answered already.
pub fn proceed(listener: i32, id: u64) -> Result<(), Errno> {
    let response = Response { id, value: 0, error: 0, flags: CONTINUE };
    // SAFETY: the kernel reads one response.
    unsafe { call!(libc::SYS_ioctl, listener, SEND, &raw const response) }.map(drop)
}

/// Lets the caller and its supervisor take turns on one processor: each wakes the other as the last
/// thing that it does. Linux 6.6.
///
/// # Errors
/// `EINVAL` on an older kernel.
pub fn take_turns(listener: i32) -> Result<(), Errno> {
    // SAFETY: numbers only; SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP is 1.
    unsafe { call!(libc::SYS_ioctl, listener, SET_FLAGS, 1) }.map(drop)
}

/// Returns true if the caller still waits, so that what /proc says about its thread is about it.
#[must_use]
pub fn is_waiting(listener: i32, id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe { call!(libc::SYS_ioctl, listener, ID_VALID, &raw const id) }.is_ok()
}

const _: () = {
    assert!(size_of::<Notification>() == RECEIVE >> 16 & 0x3fff);
    assert!(size_of::<Response>() == SEND >> 16 & 0x3fff);
};
