//! A program that filters its own system calls, seccomp(2).
//!
//! Such a filter judges our calls too, and may kill the program for one that it would not have
//! made itself. So the filter is asked first, by interpreting it as the kernel will: unless it
//! allows each call of ours, the program goes on unregulated, and so do those that it starts.
//! What we can do without it may also refuse with an error, as old kernels do.

use core::ffi::{c_int, c_long, c_uint, c_void};

use crate::engine;

/// What we call, besides what the program's own calls are.
const OURS: [c_long; 22] = [
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_geteuid,
    libc::SYS_getpid,
    libc::SYS_kill,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_rt_sigprocmask,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_write,
];

/// What we call and can do without.
const OPTIONAL: [c_long; 7] = [
    libc::SYS_fadvise64,
    libc::SYS_getrusage,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_readahead,
    libc::SYS_sync_file_range,
    // cachestat(2)
    451,
];

/// What we call besides when the class has a threshold of network traffic.
const OF_NETWORK: [c_long; 6] = [
    libc::SYS_epoll_ctl,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_rt_sigaction,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The kernel's longest program (`BPF_MAXINSNS`).
const LONGEST: usize = 4096;

/// Sends the calls of all code but a range to the program itself, ours among them (linux/prctl.h, Linux 5.11).
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;

/// One instruction, `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u16,
    then: u8,
    otherwise: u8,
    value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
#[derive(Debug)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

/// Calls `real`, which is prctl(2): if it confines the program, mind that.
pub fn by_prctl<T: Copy + Into<i64>>(
    option: c_int,
    mode: usize,
    program: usize,
    real: impl FnOnce() -> T,
) -> T {
    if option == PR_SET_SYSCALL_USER_DISPATCH && mode != 0 {
        return confine(None, real);
    }
    if option != libc::PR_SET_SECCOMP {
        return real();
    }
    let filter = mode == libc::SECCOMP_MODE_FILTER as usize;
    confine(filter.then_some(program as *const c_void), real)
}

/// Calls `real`, which is seccomp(2).
pub fn by_seccomp<T: Copy + Into<i64>>(
    operation: c_uint,
    program: usize,
    real: impl FnOnce() -> T,
) -> T {
    match operation {
        libc::SECCOMP_SET_MODE_STRICT => confine(None, real),
        libc::SECCOMP_SET_MODE_FILTER => confine(Some(program as *const c_void), real),
        _ => real(),
    }
}

/// Installs a filter, or the strict mode, which allows nothing of ours.
fn confine<T: Copy + Into<i64>>(program: Option<*const c_void>, real: impl FnOnce() -> T) -> T {
    let paused = engine::pause();
    match program {
        // It cannot be judged, and nothing of ours is allowed afterwards.
        None => engine::await_outside(paused, true),
        Some(program) if !program.is_null() => engine::await_outside(paused, false),
        // Without a filter it is the question whether there are filters at all.
        Some(_) => {}
    }
    let result = real();
    // With SECCOMP_FILTER_FLAG_NEW_LISTENER success is a descriptor.
    let installed = result.into() >= 0;
    let judged = |calls: &[c_long], accepts: fn(u32) -> bool| {
        // SAFETY: the kernel has just read the program, so it can be read.
        program.is_some_and(|program| unsafe { judge_all(program.cast(), calls, accepts) })
    };
    if installed && !judged(&[libc::SYS_statx], allows) {
        discnice_sys::file::forgo_statx();
    }
    if !installed || judged(&OURS, allows) && judged(&OPTIONAL, spares) {
        let traffic = !installed || judged(&OF_NETWORK, allows);
        engine::resume(paused, traffic);
    }
    result
}

/// Returns true if the filter's answer to each of these calls is one that `accepts` accepts.
unsafe fn judge_all(
    program: *const Program,
    calls: &[c_long],
    accepts: impl Fn(u32) -> bool,
) -> bool {
    // SAFETY: the caller vouches for the program.
    let instructions = unsafe {
        let Program { length, instructions } = program.read_unaligned();
        if instructions.is_null() || !instructions.is_aligned() {
            return false;
        }
        core::slice::from_raw_parts(instructions, LONGEST.min(length.into()))
    };
    calls.iter().all(|number| judge(instructions, *number as u32).is_some_and(&accepts))
}

/// Returns true if a call that is answered so is made.
fn allows(action: u32) -> bool {
    action == libc::SECCOMP_RET_ALLOW || action == libc::SECCOMP_RET_LOG
}

/// Returns true if a call that is answered so does not harm the program.
fn spares(action: u32) -> bool {
    allows(action) || action == libc::SECCOMP_RET_ERRNO
}

/// What the filter answers to a call of this number without arguments: classic BPF as
/// seccomp(2) restricts it (kernel/seccomp.c, `seccomp_check_filter`). `None` for what the
/// kernel would not accept.
fn judge(program: &[Instruction], number: u32) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0usize;
    loop {
        let Instruction { code, then, otherwise, value } = *program.get(at)?;
        at += 1;
        let slot = value as usize;
        match code {
            // LD
            0x20 => a = load(value, number),
            0x00 => a = value,
            0x80 => a = 64,
            0x60 => a = *memory.get(slot)?,
            // LDX
            0x01 => x = value,
            0x81 => x = 64,
            0x61 => x = *memory.get(slot)?,
            // ST, STX
            0x02 => *memory.get_mut(slot)? = a,
            0x03 => *memory.get_mut(slot)? = x,
            // RET
            0x06 => return Some(value & libc::SECCOMP_RET_ACTION_FULL),
            0x16 => return Some(a & libc::SECCOMP_RET_ACTION_FULL),
            // MISC: TAX, TXA
            0x07 => x = a,
            0x87 => a = x,
            0x05 => at = at.checked_add(slot)?,
            // The low bits say ALU or JMP, bit 3 whether with X or a value, the rest the operation.
            _ => {
                let operand = if code & 0x08 == 0 { value } else { x };
                match code & 0xf7 {
                    0x15 => at += usize::from(if a == operand { then } else { otherwise }),
                    0x25 => at += usize::from(if a > operand { then } else { otherwise }),
                    0x35 => at += usize::from(if a >= operand { then } else { otherwise }),
                    0x45 => at += usize::from(if a & operand != 0 { then } else { otherwise }),
                    operation => a = arithmetic(operation, a, operand)?,
                }
            }
        }
    }
}

/// A word of `struct seccomp_data`: call number, architecture, then addresses and arguments,
/// which are taken as zero.
fn load(offset: u32, number: u32) -> u32 {
    match offset {
        0 => number,
        4 => ARCHITECTURE,
        _ => 0,
    }
}

fn arithmetic(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x04 => a.wrapping_add(operand),
        0x14 => a.wrapping_sub(operand),
        0x24 => a.wrapping_mul(operand),
        0x34 => a.checked_div(operand)?,
        0x44 => a | operand,
        0x54 => a & operand,
        0x64 => a.checked_shl(operand)?,
        0x74 => a.checked_shr(operand)?,
        0x84 => a.wrapping_neg(),
        0xa4 => a ^ operand,
        _ => return None,
    })
}
