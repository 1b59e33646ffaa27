//! Requests to valgrind(1), below which a program may run: a sequence of instructions that do nothing elsewhere.
//! valgrind manual, "The Client Request mechanism".
//!
//! helgrind and drd look for memory that threads share without a lock. All that ours share is atomic, which they
//! cannot know: they would report each word of it as a race of the program's.

use core::arch::asm;
use core::ptr::NonNull;

/// `_VG_USERREQ__HG_ARANGE_MAKE_UNTRACKED`, helgrind.h: address, length.
const HELGRIND_UNTRACKED: usize = 0x4847_0127;
/// `VG_USERREQ__DRD_START_SUPPRESSION`, drd.h: address, length.
const DRD_SUPPRESSED: usize = 0x4452_0002;
/// `VG_USERREQ__RUNNING_ON_VALGRIND`, valgrind.h.
const RUNNING: usize = 0x1001;

/// Returns true if this program runs under valgrind.
#[must_use]
pub fn is_running() -> bool {
    request([RUNNING, 0, 0, 0, 0, 0]) != 0
}

/// Has helgrind and drd report nothing about memory that only we use.
pub fn leave_unchecked(start: NonNull<u8>, length: usize) {
    for call in [HELGRIND_UNTRACKED, DRD_SUPPRESSED] {
        request([call, start.as_ptr() as usize, length, 0, 0, 0]);
    }
}

/// Makes a request; returns 0 elsewhere than below valgrind, and where its tool does not know it.
fn request(arguments: [usize; 6]) -> usize {
    let answer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the rotations come to two whole turns, and the exchange is of a register with itself. valgrind reads the
    // arguments, and writes the one register that is declared.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") 0usize => answer,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; x12 is turned twice, and x10 is or-ed with itself.
    unsafe {
        asm!(
            "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") arguments.as_ptr(), inout("x3") 0usize => answer,
            options(nostack),
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_happens_elsewhere() {
        let mut memory = [7u8; 64];
        leave_unchecked(NonNull::from(&mut memory).cast(), memory.len());
        assert!(memory == [7; 64] && !is_running());
    }
}
