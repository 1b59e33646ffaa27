//! dprintf(3) and its relatives. Since glibc 2.37 they write by themselves, with calls that no hook sees; before, they used a
//! stream, as those of `stdio` are.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;

use crate::hooks::definition::hooks;
use crate::hooks::write::write_whole;
use crate::real::reals;

reals! {
    VERSION = c"gnu_get_libc_version";
}

/// How much is printed is known when it is; this many bytes are assumed.
const PRINTED: usize = 512;

/// Returns true if libc writes what is printed to a descriptor by itself.
fn writes_itself() -> bool {
    type Version = unsafe extern "C" fn() -> *const c_char;
    if !VERSION.exists() {
        return false;
    }
    // SAFETY: libc's function of this name has this signature.
    let version = unsafe { mem::transmute::<*mut c_void, Version>(VERSION.get())() };
    // SAFETY: it returns a C string of its own.
    match unsafe { CStr::from_ptr(version) }.to_bytes() {
        [b'2', b'.', tens, ones, ..] => (*tens, *ones) >= (b'3', b'7'),
        _ => false,
    }
}

/// Prints by `real`, which returns how much it wrote.
#[inline(never)]
fn print(fd: c_int, real: &dyn Fn() -> c_int) -> c_int {
    if writes_itself() {
        write_whole(fd, PRINTED, None, &|| real() as isize) as c_int
    } else {
        real()
    }
}

hooks! {
    /// vdprintf(3). A list of arguments is passed by its address.
    fn [vdprintf] (fd: c_int, format: *const c_char, list: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments, which are used once.
        print(fd, &|| unsafe { real(fd, format, list) })
    }

    /// vdprintf(3) as compiled with `_FORTIFY_SOURCE`.
    fn [__vdprintf_chk] (fd: c_int, flag: c_int, format: *const c_char, list: *mut c_void) -> c_int, real => {
        // SAFETY: as above.
        print(fd, &|| unsafe { real(fd, flag, format, list) })
    }
}

unsafe extern "C" fn print_list(fd: c_int, format: *const c_char, list: *mut c_void) -> c_int {
    // SAFETY: the program's own arguments, as a list.
    unsafe { vdprintf(fd, format, list) }
}

unsafe extern "C" fn print_list_checked(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe { __vdprintf_chk(fd, flag, format, list) }
}

/// Makes a list (`va_list`) of the arguments behind the named ones, and calls `target` with these and the list's address. The
/// named ones take so many bytes of the registers that hold arguments (x86-64), or leave so many (arm64); the list is the next
/// argument.
macro_rules! list_hook {
    ($(#[$meta:meta])* $name:ident ($($argument:ident : $type:ty),*) => $target:ident,
        x86_64: $taken:literal $list:literal, aarch64: $left:literal $next:literal) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // Below the return address: the registers (176 bytes at 32), and the list (at 0). A thread may be cancelled
            // while it writes, so the unwinder must find its way.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 216",
                ".cfi_adjust_cfa_offset 216",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $taken),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {target}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }

        $(#[$meta])*
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // Above the frame record: the list (at 16), and the registers of both kinds (at 48 and 96).
            core::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, -224]!",
                ".cfi_adjust_cfa_offset 224",
                ".cfi_rel_offset x29, 0",
                ".cfi_rel_offset x30, 8",
                "stp x2, x3, [sp, 48]",
                "stp x4, x5, [sp, 64]",
                "stp x6, x7, [sp, 80]",
                "stp q0, q1, [sp, 96]",
                "stp q2, q3, [sp, 128]",
                "stp q4, q5, [sp, 160]",
                "stp q6, q7, [sp, 192]",
                "add x8, sp, 224",
                "add x9, sp, 96",
                "stp x8, x9, [sp, 16]",
                "str x8, [sp, 32]",
                concat!("mov w8, -", $left),
                "mov w9, -128",
                "stp w8, w9, [sp, 40]",
                concat!("add ", $next, ", sp, 16"),
                "bl {target}",
                "ldp x29, x30, [sp], 224",
                ".cfi_adjust_cfa_offset -224",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }
    };
}

list_hook! {
    /// dprintf(3).
    dprintf(fd: c_int, format: *const c_char) => print_list, x86_64: "16" "rdx", aarch64: "48" "x2"
}
list_hook! {
    /// dprintf(3) as compiled with `_FORTIFY_SOURCE`.
    __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char) => print_list_checked,
        x86_64: "24" "rcx", aarch64: "40" "x3"
}
