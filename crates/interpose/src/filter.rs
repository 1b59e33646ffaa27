//! What a filter of system calls answers to a call, seccomp(2).
//!
//! A filter is a program in classic BPF, of which the kernel accepts a part (kernel/seccomp.c, `seccomp_check_filter`). It is
//! interpreted here as the kernel will do it; tests/filter.rs compares the two.
#![allow(unsafe_code, reason = "a filter lies in the memory of the program that installs it")]

pub use libc::{sock_filter as Instruction, sock_fprog as Program};

use crate::needs::Need;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The kernel's longest program (`BPF_MAXINSNS`).
const LONGEST: usize = 4096;

/// Bytes of `struct seccomp_data`.
const LENGTH: u32 = 64;

/// Returns true if the filter's answer to each of these calls that is so needed is one that `accepts` accepts.
///
/// # Safety
/// The program can be read: the kernel has just done so.
#[inline(never)]
pub unsafe fn judge_all(
    program: *const Program,
    calls: &[u16],
    need: Need,
    accepts: impl Fn(u32) -> bool,
) -> bool {
    // SAFETY: the caller vouches for the program.
    let instructions = unsafe {
        let Program { len, filter } = program.read_unaligned();
        if filter.is_null() || !filter.is_aligned() {
            return false;
        }
        core::slice::from_raw_parts(filter, LONGEST.min(len.into()))
    };
    let action = |number: u32| Some(judge(instructions, number)? & libc::SECCOMP_RET_ACTION_FULL);
    let mut needed = calls.iter().filter(|number| Need::of(**number) == need);
    needed.all(|number| action((*number).into()).is_some_and(&accepts))
}

/// Returns true if a call that is answered so is made.
pub fn allows(action: u32) -> bool {
    action == libc::SECCOMP_RET_ALLOW || action == libc::SECCOMP_RET_LOG
}

/// Returns true if a call that is answered so does not harm the program.
pub fn spares(action: u32) -> bool {
    allows(action) || action == libc::SECCOMP_RET_ERRNO
}

/// What the filter answers to a call of this number without arguments: an action, and in the lower half its data. `None` for what
/// the kernel would not accept as a filter, as far as that decides the answer, and where it would kill for a division by zero.
pub fn judge(program: &[Instruction], number: u32) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0usize;
    loop {
        let Instruction { code, jt, jf, k } = *program.get(at)?;
        at += 1;
        let slot = k as usize;
        match code {
            // LD
            0x20 => a = load(k, number),
            0x00 => a = k,
            0x80 => a = LENGTH,
            0x60 => a = *memory.get(slot)?,
            // LDX
            0x01 => x = k,
            0x81 => x = LENGTH,
            0x61 => x = *memory.get(slot)?,
            // ST, STX
            0x02 => *memory.get_mut(slot)? = a,
            0x03 => *memory.get_mut(slot)? = x,
            // RET
            0x06 => return Some(k),
            0x16 => return Some(a),
            // MISC: TAX, TXA
            0x07 => x = a,
            0x87 => a = x,
            0x05 => at = at.checked_add(slot)?,
            // ALU: NEG, which has no operand
            0x84 => a = a.wrapping_neg(),
            // LSH, RSH: by a value, the kernel accepts what shifts; by X, it takes the lower bits.
            0x64 | 0x74 if k >= u32::BITS => return None,
            // The low bits say ALU or JMP, bit 3 whether with X or a value, the rest the operation.
            _ => {
                let operand = if code & 0x08 == 0 { k } else { x };
                match code & 0xf7 {
                    0x15 => at += usize::from(if a == operand { jt } else { jf }),
                    0x25 => at += usize::from(if a > operand { jt } else { jf }),
                    0x35 => at += usize::from(if a >= operand { jt } else { jf }),
                    0x45 => at += usize::from(if a & operand != 0 { jt } else { jf }),
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
        0x64 => a.wrapping_shl(operand),
        0x74 => a.wrapping_shr(operand),
        0xa4 => a ^ operand,
        _ => return None,
    })
}
