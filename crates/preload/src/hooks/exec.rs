//! exec*(3): the process becomes another program, which must be regulated too.

use core::ffi::{c_char, c_int};

use crate::environment::current;
use crate::hooks::definition::hooks;
use crate::loading::Target;
use crate::real::reals;
use crate::{environment, lifecycle};

type Block = *const *const c_char;

/// Executes another program by `real`, given its environment with our variables, when what it reads to
/// start has been brought in.
pub(super) fn execute<T>(block: Block, target: Target, real: impl FnOnce(Block) -> T) -> T {
    let Some(departure) = lifecycle::depart(target) else { return real(block) };
    // SAFETY: the program gives its own block, which the kernel would read next.
    let ours = unsafe {
        environment::with_ours(block, environment::scratch(), &departure.token, departure.carried)
    };
    let failed = real(ours.unwrap_or(block));
    departure.failed();
    failed
}

reals! {
    EXECVE = c"execve";
    EXECVPE = c"execvpe";
}

type Execve = unsafe extern "C" fn(*const c_char, Block, Block) -> c_int;

fn here(path: *const c_char) -> Target {
    Target::At(libc::AT_FDCWD, path)
}

/// execve(2) with our variables.
unsafe fn execute_by_path(path: *const c_char, arguments: Block, block: Block) -> c_int {
    // SAFETY: the function has this signature.
    let real = unsafe { core::mem::transmute::<*mut core::ffi::c_void, Execve>(EXECVE.get()) };
    // SAFETY: the program's own arguments.
    execute(block, here(path), |block| unsafe { real(path, arguments, block) })
}

/// execvpe(3) with our variables.
unsafe fn execute_by_name(name: *const c_char, arguments: Block, block: Block) -> c_int {
    // SAFETY: the function has this signature.
    let real = unsafe { core::mem::transmute::<*mut core::ffi::c_void, Execve>(EXECVPE.get()) };
    // SAFETY: the program's own arguments.
    execute(block, Target::Named(name), |block| unsafe { real(name, arguments, block) })
}

hooks! {
    /// execve(2).
    fn [execve] (path: *const c_char, arguments: Block, block: Block) -> c_int, _real => {
        // SAFETY: the program's own arguments.
        unsafe { execute_by_path(path, arguments, block) }
    }

    /// execvpe(3).
    fn [execvpe] (name: *const c_char, arguments: Block, block: Block) -> c_int, _real => {
        // SAFETY: the program's own arguments.
        unsafe { execute_by_name(name, arguments, block) }
    }

    /// execv(3).
    fn [execv] (path: *const c_char, arguments: Block) -> c_int, _real => {
        // SAFETY: the program's own arguments.
        unsafe { execute_by_path(path, arguments, current()) }
    }

    /// execvp(3).
    fn [execvp] (name: *const c_char, arguments: Block) -> c_int, _real => {
        // SAFETY: the program's own arguments.
        unsafe { execute_by_name(name, arguments, current()) }
    }

    /// fexecve(3).
    fn [fexecve] (fd: c_int, arguments: Block, block: Block) -> c_int, real => {
        // SAFETY: the program's own arguments.
        execute(block, Target::Opened(fd), |block| unsafe { real(fd, arguments, block) })
    }

    /// execveat(2).
    fn [execveat] (directory: c_int, path: *const c_char, arguments: Block, block: Block, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        let real = |block| unsafe { real(directory, path, arguments, block, flags) };
        execute(block, Target::At(directory, path), real)
    }
}

/// Puts the register arguments of a call with a variable list in front of those that lie on the
/// stack, so that the list is an array, and calls `target(first, array)`.
macro_rules! list_hook {
    ($(#[$meta:meta])* $name:ident => $target:ident) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, first: *const c_char) -> c_int {
            // The return address moves from above the register arguments to below them, and
            // back. Six words lie between the two, so the stack is aligned at the call.
            core::arch::naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {target}",
                "pop rcx",
                "add rsp, 40",
                "push rcx",
                "ret",
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
        pub unsafe extern "C" fn $name(path: *const c_char, first: *const c_char) -> c_int {
            core::arch::naked_asm!(
                "sub sp, sp, 64",
                "str x1, [sp, 8]",
                "stp x2, x3, [sp, 16]",
                "stp x4, x5, [sp, 32]",
                "stp x6, x7, [sp, 48]",
                "add x1, sp, 8",
                "stp x29, x30, [sp, -16]!",
                "bl {target}",
                "ldp x29, x30, [sp], 16",
                "add sp, sp, 64",
                "ret",
                target = sym $target,
            )
        }
    };
}

unsafe extern "C" fn execute_list(path: *const c_char, arguments: Block) -> c_int {
    // SAFETY: the list is the program's, laid out as an array.
    unsafe { execute_by_path(path, arguments, current()) }
}

unsafe extern "C" fn execute_list_by_name(name: *const c_char, arguments: Block) -> c_int {
    // SAFETY: as above.
    unsafe { execute_by_name(name, arguments, current()) }
}

unsafe extern "C" fn execute_list_with_block(path: *const c_char, arguments: Block) -> c_int {
    let mut end = arguments;
    // SAFETY: the list ends with a null pointer, behind which execle(3) takes the environment.
    unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        execute_by_path(path, arguments, *end.add(1).cast::<Block>())
    }
}

list_hook! {
    /// execl(3).
    execl => execute_list
}
list_hook! {
    /// execlp(3).
    execlp => execute_list_by_name
}
list_hook! {
    /// execle(3).
    execle => execute_list_with_block
}
