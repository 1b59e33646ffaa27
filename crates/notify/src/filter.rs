//! The filter: which calls are told to the supervisor.
//!
//! ```text
//! architecture: native, 32-bit (x86-64 only), or another, which is left alone
//! number:       none of ours      -> allowed; the kernel remembers that (Linux 5.11) and does not
//!                                    run the filter for it again
//!               one of ours       -> from the gate page: allowed; else told to the supervisor
//!               posix_fadvise(2)  -> told if it starts reading
//!               io_uring_setup(2) -> does not exist, if nothing may escape
//! ```

use discnice_sys::gate;
use discnice_sys::seccomp::{ARCHITECTURE, Instruction};

use crate::calls;

/// Places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const INSTRUCTION_LOW: u32 = 8;
const INSTRUCTION_HIGH: u32 = 12;
const FOURTH_ARGUMENT: u32 = 16 + 3 * 8;

/// Programs of 32 bits on x86-64, `AUDIT_ARCH_I386`.
const I386: u32 = 0x4000_0003;
/// Marks calls of the x32 ABI, which have numbers of their own (asm/unistd.h, `__X32_SYSCALL_BIT`).
const X32: u32 = 0x4000_0000;

/// Which programs are below the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One program that our library cannot enter; it can enter the dynamic ones that this program
    /// starts, and then regulates them itself.
    Gated,
    /// All, and nothing may escape: no gate, no `io_uring`.
    All,
}

/// Instructions of classic BPF that are needed here (linux/filter.h).
fn load(at: u32) -> Instruction {
    Instruction { code: 0x20, then: 0, otherwise: 0, value: at }
}

fn mask(value: u32) -> Instruction {
    Instruction { code: 0x54, then: 0, otherwise: 0, value }
}

fn if_equal(value: u32, then: usize, otherwise: usize) -> Instruction {
    Instruction { code: 0x15, then: then as u8, otherwise: otherwise as u8, value }
}

fn if_at_least(value: u32, then: usize) -> Instruction {
    Instruction { code: 0x35, then: then as u8, otherwise: 0, value }
}

fn answer(action: u32) -> Instruction {
    Instruction { code: 0x06, then: 0, otherwise: 0, value: action }
}

/// The program.
#[must_use]
pub fn program(reach: Reach) -> Vec<Instruction> {
    let native = native(reach);
    let mut program = vec![load(ARCH)];
    if cfg!(target_arch = "x86_64") {
        let compat = compat(reach);
        program.push(if_equal(I386, 0, compat.len()));
        program.extend(compat);
    }
    program.push(if_equal(ARCHITECTURE, 1, 0));
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program.extend(native);
    program
}

/// What follows the comparisons of a number: an instruction that allows, and then these.
const REFUSE: usize = 1;
const ASK: usize = 2;

fn native(reach: Reach) -> Vec<Instruction> {
    let told: Vec<u32> = calls::native().collect();
    // The advice's own part stands behind the part that asks.
    let asking = ask(reach);
    let advice = ASK + asking.len();
    let mut numbers: Vec<(u32, usize)> = told.into_iter().map(|number| (number, ASK)).collect();
    numbers.push((libc::SYS_fadvise64 as u32, advice));
    if reach == Reach::All {
        numbers.push((libc::SYS_io_uring_setup as u32, REFUSE));
    }
    let mut program = vec![load(NUMBER)];
    if cfg!(target_arch = "x86_64") && reach == Reach::All {
        program.push(if_at_least(X32, numbers.len() + REFUSE));
    }
    program.extend(compare(&numbers));
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program.push(answer(refusal(libc::ENOSYS)));
    program.extend(asking);
    program.extend([
        load(FOURTH_ARGUMENT),
        if_equal(gate::QUESTION as u32, 1, 0),
        if_equal(libc::POSIX_FADV_WILLNEED as u32, 1, 2),
        answer(refusal(gate::ANSWER)),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]);
    program
}

fn compat(reach: Reach) -> Vec<Instruction> {
    let mut numbers: Vec<(u32, usize)> = calls::compat().map(|number| (number, ASK)).collect();
    if reach == Reach::All {
        numbers.push((calls::COMPAT_IO_URING_SETUP, REFUSE));
    }
    let mut program = vec![load(NUMBER)];
    program.extend(compare(&numbers));
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program.push(answer(refusal(libc::ENOSYS)));
    program.push(answer(libc::SECCOMP_RET_USER_NOTIF));
    program
}

/// One comparison for each number; behind them lies what they lead to.
fn compare(numbers: &[(u32, usize)]) -> impl Iterator<Item = Instruction> {
    let last = numbers.len() - 1;
    numbers
        .iter()
        .enumerate()
        .map(move |(index, (number, further))| if_equal(*number, last - index + further, 0))
}

fn refusal(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Tells the supervisor, unless the call comes from the gate.
fn ask(reach: Reach) -> Vec<Instruction> {
    if reach == Reach::All {
        return vec![answer(libc::SECCOMP_RET_USER_NOTIF)];
    }
    let (low, high) = (gate::ADDRESS as u32, (gate::ADDRESS as u64 >> 32) as u32);
    vec![
        load(INSTRUCTION_HIGH),
        if_equal(high, 0, 3),
        load(INSTRUCTION_LOW),
        mask(!(discnice_sys::memory::PAGE as u32 - 1)),
        if_equal(low, 1, 0),
        answer(libc::SECCOMP_RET_USER_NOTIF),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}
