//! The gate: a page at a known address from which system calls can be made.
//!
//! Below a filter of ours ([`crate::seccomp`]) every call that can move file data is told to a
//! supervisor, unless it comes from this page. A process that regulates itself makes its calls
//! from there, and the filter costs it tens of nanoseconds instead of microseconds. The filter
//! survives exec(2) and the page does not, so a program that our library cannot enter has no gate
//! and is supervised.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::memory::PAGE;
use crate::raw::{Errno, Syscall, call, syscall};

/// Address of the page: below what Linux gives to mappings by itself and above where programs are
/// linked, on machines with 47 bits of addresses or more.
pub const ADDRESS: usize = 0x3a5c_7e00_1000;
/// Instruction pointer after its one system call.
pub const BEHIND: usize = ADDRESS + if cfg!(target_arch = "x86_64") { 2 } else { 4 };
/// An advice that posix_fadvise(2) does not know: our filter answers it with [`ANSWER`].
pub const QUESTION: i32 = 0x4469_4e69;
/// What only our filter answers.
pub const ANSWER: i32 = libc::ENOTUNIQ;

/// `syscall; ret`.
#[cfg(target_arch = "x86_64")]
const CODE: [u8; 3] = [0x0f, 0x05, 0xc3];
/// `svc 0; ret`.
#[cfg(target_arch = "aarch64")]
const CODE: [u8; 8] = [0x01, 0x00, 0x00, 0xd4, 0xc0, 0x03, 0x5f, 0xd6];

/// Set if this process has the page. A forked child has it too.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Returns true if calls go through the gate.
#[inline(always)]
#[must_use]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Returns true if this process is below a filter that lets calls from the gate pass.
#[must_use]
pub fn is_needed() -> bool {
    // SAFETY: numbers only; without the filter the kernel answers EBADF.
    let asked = unsafe { call!(libc::SYS_fadvise64, -1isize, 0, 0, QUESTION) };
    asked == Err(Errno(ANSWER))
}

/// Maps the page, if it is needed and may be had: from now on calls can go through it.
pub fn open() {
    if !is_open() && is_needed() && map().is_ok() {
        OPEN.store(true, Ordering::Release);
    }
}

fn map() -> Result<(), Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE refuses addresses that something uses.
    let start = unsafe { call!(libc::SYS_mmap, ADDRESS, PAGE, protection, flags, -1isize, 0)? };
    if start == ADDRESS {
        let code = start as *mut [u8; CODE.len()];
        // SAFETY: the page is fresh, writable and ours alone.
        unsafe { code.write(CODE) };
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: no other code knows the page.
        let done = unsafe { call!(libc::SYS_mprotect, start, PAGE, protection) };
        if done.is_ok() {
            return Ok(());
        }
    }
    // A kernel before 4.17 takes the address as a hint; SELinux may refuse to execute.
    // SAFETY: the page was mapped above and is not in use.
    let _ = unsafe { call!(libc::SYS_munmap, start, PAGE) };
    Err(Errno(libc::EACCES))
}

/// Makes the call from the gate, or as any other if there is none.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// As [`syscall`].
#[inline]
pub unsafe fn pass(asked: Syscall) -> Result<usize, Errno> {
    if !is_open() {
        // SAFETY: the caller vouches for the arguments.
        return unsafe { syscall(asked) };
    }
    let Syscall(number, [a, b, c, d, e, f]) = asked;
    let value: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the page holds a system call and a return, which the kernel lets preserve every
    // register but rax, rcx and r11; the caller vouches for the arguments.
    unsafe {
        asm!(
            "call {gate}",
            gate = in(reg) ADDRESS,
            inlateout("rax") number as isize => value,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the link register is given up.
    unsafe {
        asm!(
            "blr {gate}",
            gate = in(reg) ADDRESS,
            in("x8") number,
            inlateout("x0") a => value,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            lateout("x30") _,
        );
    }
    if (-4095..0).contains(&value) { Err(Errno(-value as i32)) } else { Ok(value as usize) }
}
