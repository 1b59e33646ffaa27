//! The system-call instruction.

use core::arch::asm;
use core::ffi::c_long;

/// An error number of the kernel (errno(3)), always positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "errno {}", self.0)
    }
}

impl core::error::Error for Errno {}

impl Errno {
    /// Interrupted by a signal handler.
    pub const INTR: Self = Self(libc::EINTR);
    /// Not permitted.
    pub const PERM: Self = Self(libc::EPERM);
    /// No such process.
    pub const SRCH: Self = Self(libc::ESRCH);
    /// Does not exist.
    pub const NOENT: Self = Self(libc::ENOENT);
    /// Exists already.
    pub const EXIST: Self = Self(libc::EEXIST);
    /// A limit of the system is reached.
    pub const NOSPC: Self = Self(libc::ENOSPC);
}

/// A system call: its number and up to six arguments; missing ones are zero.
#[derive(Debug, Clone, Copy)]
pub struct Syscall(pub c_long, pub [usize; 6]);

/// Makes the call.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The arguments must satisfy what the kernel's contract for this call asks: memory that it
/// writes must be ours to write, and a call that changes the process (its mappings, its signal
/// handlers) must be wanted.
#[inline]
pub unsafe fn syscall(call: Syscall) -> Result<usize, Errno> {
    let Syscall(number, [a, b, c, d, e, f]) = call;
    let value: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel preserves every register but rax, rcx and r11 (syscall(2), table of
    // calling conventions); the caller vouches for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => value,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel preserves every register but x0 (syscall(2), table of calling
    // conventions); the caller vouches for the arguments.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => value,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    if (-4095..0).contains(&value) { Err(Errno(-value as i32)) } else { Ok(value as usize) }
}

/// The arguments, with zeroes for those that the call does not have.
pub const fn pad<const GIVEN: usize>(given: [usize; GIVEN]) -> [usize; 6] {
    let mut all = [0; 6];
    let mut at = 0;
    while at < GIVEN && at < 6 {
        all[at] = given[at];
        at += 1;
    }
    all
}

/// Lists a call in the section `discnice_calls`, an array of call numbers, once for each object file.
///
/// The entry is part of the code that makes the call: where the optimizer drops the one, it drops the other. So what the preload
/// library calls, linked as a whole, can be read from its own memory (`preload/src/confinement.rs`), and cannot differ from what it
/// contains.
#[macro_export]
macro_rules! list_call {
    ($number:expr) => {
        ::core::arch::asm!(
            ".ifndef .Ldiscnice_calls_{number}",
            ".set .Ldiscnice_calls_{number}, 1",
            // Retained: the linker does not see that all that lies between its two symbols is used.
            ".pushsection discnice_calls, \"aR\", @progbits",
            ".2byte {number}",
            ".popsection",
            ".endif",
            number = const $number,
            options(nomem, nostack, preserves_flags),
        )
    };
}

/// `call!(number, arguments…)`: pointers and numbers as the kernel's registers hold them.
macro_rules! call {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        $crate::list_call!($number);
        $crate::raw::syscall($crate::raw::Syscall($number, $crate::raw::pad([$($argument as usize),*])))
    }};
}
pub(crate) use call;

/// `pass!(number, arguments…)`: a call through the gate, if there is one.
macro_rules! pass {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        $crate::list_call!($number);
        $crate::gate::pass($crate::raw::Syscall($number, $crate::raw::pad([$($argument as usize),*])))
    }};
}
pub(crate) use pass;
