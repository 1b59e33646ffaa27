//! Giving way in processor time, disk priority and memory (Rate Windows, 2).
//!
//! The paper adds a scheduling class below all others, because a process of the lowest priority,
//! nice -19, still takes 8 to 40 % from its hosts. Linux has had that class since 2.6.23. It may be
//! entered without privilege, its children inherit it, and it holds within the process's scheduling
//! group. Each session has a group of its own (autogroup, sched(7)), with a priority of its own: a
//! job that leads a session gives way with all of it. A job in a session that others have begun
//! cannot, as they would have to, too.

#![allow(unsafe_code, reason = "sched_setscheduler(2) and ioprio_set(2) have no safe wrapper")]

use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io, thread};

use discnice_graybox::mac;
use discnice_ledger::Class;
use discnice_ledger::policy::Memory;
use discnice_ledger::policy::memory::Bounds;
use discnice_sys::process;

/// `IOPRIO_WHO_PROCESS` and `IOPRIO_CLASS_IDLE` of ioprio_set(2), which libc does not wrap.
const PRIORITY_OF_PROCESS: libc::c_int = 1;
const CLASS_IDLE: libc::c_int = 3;
/// `IOPRIO_CLASS_BE`, and the least priority in it.
const CLASS_BEST_EFFORT: libc::c_int = 2;
const LEAST_EFFORT: libc::c_int = 7;
const CLASS_SHIFT: u32 = 13;

/// The least priority of a session's group, sched(7).
const LEAST: &str = "19";
/// An unprivileged user may set one only ten times a second on the whole machine: of twelve that
/// start at once the last waits for a second and a bit, and nothing waits for it.
const TRIES: u32 = 20;
const TURN: Duration = Duration::from_millis(60);

/// How much resident memory a class keeps while others wait for memory, if that is bounded; see ADR 15.
pub fn memory(class: &Class) -> Option<Bounds> {
    bounds(class.memory(), class.is_guest())
}

/// What these thresholds come to on this machine.
pub fn bounds(memory: Memory, guest: bool) -> Option<Bounds> {
    static MACHINE: OnceLock<u64> = OnceLock::new();
    memory.bounds(guest, *MACHINE.get_or_init(mac::machine))
}

//= rate-windows/2-guest-cpu
//= ms-manners/3-lower-priority
/// Puts this process, and so the command that takes its place, into the idle scheduling class and
/// the idle class of disk priority: unless it has a least rate, which the kernel's scheduler would not keep.
///
/// # Errors
/// The kernel's: a container may forbid either.
pub fn become_one(class: &Class) -> io::Result<()> {
    // SAFETY: the struct is plain numbers, for which zero is what the idle class wants.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is this process; the kernel reads the parameters.
    let scheduled = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if scheduled != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: numbers only. An I/O scheduler that knows no priorities ignores it.
    let prioritised = unsafe {
        libc::syscall(libc::SYS_ioprio_set, PRIORITY_OF_PROCESS, 0, disk_priority(class))
    };
    if prioritised != 0 {
        return Err(io::Error::last_os_error());
    }
    give_way_as_a_session();
    Ok(())
}

/// What ioprio_set(2) is to set.
fn disk_priority(class: &Class) -> libc::c_int {
    match class.at_least() {
        Some(_) => CLASS_BEST_EFFORT << CLASS_SHIFT | LEAST_EFFORT,
        None => CLASS_IDLE << CLASS_SHIFT,
    }
}

/// Not every kernel has such groups, and control groups overrule them; then there is nothing to do.
fn give_way_as_a_session() {
    // SAFETY: a number only.
    let session = unsafe { libc::getsid(0) };
    if session != process::id().cast_signed() {
        return;
    }
    for _ in 0..TRIES {
        match fs::write("/proc/self/autogroup", LEAST) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(TURN),
            _ => return,
        }
    }
}
