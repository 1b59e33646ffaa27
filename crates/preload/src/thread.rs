//! The state of one thread.
//!
//! Rust's own thread locals allocate on first use and run destructors, neither of which a guest
//! may do. So the state is a zero-initialised object in the static TLS block, which the dynamic
//! linker gives every thread at birth; reaching it is two instructions ("Initial Exec" of the
//! ELF TLS ABI), which are safe in any context.

use core::arch::{asm, global_asm};
use core::ptr::NonNull;

use discnice_interpose::environment::Scratch;
use discnice_regulator::{Due, Thread};

/// What a thread has; all zeroes is valid.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Local {
    /// The regulator's.
    pub thread: Thread,
    /// Memory for the environment of a program that the thread starts, where [`crate::environment::scratch`] has none.
    pub scratch: Scratch,
    /// Calls on descriptors that cannot reach a disk since one was looked at again.
    pub others: core::cell::Cell<u32>,
}

/// A descriptor that cannot reach a disk is looked at again after so many calls, in case it was
/// replaced by means that we do not see.
const RECHECK: u32 = 1024;

impl Local {
    /// Counts a call on a descriptor that cannot reach a disk; returns why it should be looked at
    /// again.
    #[inline(always)]
    pub fn count_other(&self) -> Option<Due> {
        let calls = self.others.get().wrapping_add(1);
        self.others.set(calls);
        if calls < RECHECK { None } else { Some(Due::Calls) }
    }
}

const SIZE: usize = 384;
const _: () = assert!(size_of::<Local>() <= SIZE);

global_asm!(
    ".section .tbss.discnice_local,\"awT\",@nobits",
    ".balign 64",
    ".hidden discnice_local",
    ".globl discnice_local",
    ".type discnice_local, @object",
    ".size discnice_local, {size}",
    "discnice_local:",
    ".zero {size}",
    ".text",
    size = const SIZE,
);

/// This thread's state.
#[inline(always)]
pub fn local() -> &'static Local {
    let address: *mut Local;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the thread pointer is the first word of the block that fs addresses, and the
    // linker fills the object's offset from it into the global offset table.
    unsafe {
        asm!(
            "mov {address}, qword ptr fs:[0]",
            "add {address}, qword ptr [rip + discnice_local@GOTTPOFF]",
            address = out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the thread pointer is tpidr_el0.
    unsafe {
        asm!(
            "mrs {address}, tpidr_el0",
            "adrp {offset}, :gottprel:discnice_local",
            "ldr {offset}, [{offset}, :gottprel_lo12:discnice_local]",
            "add {address}, {address}, {offset}",
            address = out(reg) address,
            offset = out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: the object exists as long as the thread that asks, is zero at its birth, and zero
    // is valid for every field. Only its own thread reaches it, and a signal handler's accesses
    // interleave with it only at the granularity of a `Cell` operation.
    unsafe { NonNull::new_unchecked(address).as_ref() }
}
