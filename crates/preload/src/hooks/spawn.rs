//! Starting another program in a new process.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use core::{mem, ptr};

use crate::environment::{current, environ};
use crate::hooks::definition::hooks;
use crate::lifecycle::{self, Birth};
use crate::loading::Target;
use crate::real::{descriptor, errno, reals, set_errno};
use crate::{engine, environment, files};

type Block = *const *const c_char;

/// Calls `real` with the environment for a new process, when what its program reads to start has been brought in.
fn spawn<T>(block: Block, target: Target, real: impl FnOnce(Block) -> T) -> T {
    let (block, birth) = prepare(block, target);
    let result = real(block);
    birth.into_iter().for_each(Birth::end);
    result
}

/// Brings in what a program reads to start; returns the environment for its process.
#[inline(never)]
fn prepare(block: Block, target: Target) -> (Block, Option<Birth>) {
    let Some(token) = engine::token() else { return (block, None) };
    if let Some(regulator) = engine::regulator() {
        target.bring_in(&regulator);
    }
    let birth = lifecycle::bear(target);
    // SAFETY: the program gives its own block, which libc would read next.
    let ours =
        unsafe { environment::with_ours(block, environment::scratch(), &token, birth.carried) };
    (ours.unwrap_or(block), Some(birth))
}

/// Calls a function of libc that starts a program with the environment of the moment, while our
/// variables are in it. Reading the environment in another thread meanwhile is harmless; changing
/// it is not, which system(3) and popen(3) already say (attributes(7), "env").
fn with_environment<T>(real: impl FnOnce() -> T) -> T {
    let before = current();
    spawn(before, Target::At(libc::AT_FDCWD, SHELL.as_ptr()), |block| {
        if ptr::eq(block, before) {
            return real();
        }
        // SAFETY: a pointer-sized, pointer-aligned variable of libc's, exchanged atomically.
        let variable = unsafe { AtomicPtr::from_ptr(&raw mut environ) };
        let ours = block.cast_mut().cast();
        variable.store(ours, Ordering::Release);
        let result = real();
        // If another thread changed the environment meanwhile, its block stays; ours is taken out
        // of it.
        let before = before.cast_mut().cast();
        if let Err(theirs) =
            variable.compare_exchange(ours, before, Ordering::AcqRel, Ordering::Acquire)
            && !theirs.is_null()
        {
            // SAFETY: setenv(3) made it as a copy of a block of C strings.
            unsafe { environment::take(theirs) };
        }
        result
    })
}

/// What system(3), popen(3) and wordexp(3) execute.
const SHELL: &CStr = c"/bin/sh";

/// Registers the process that was started with this `result`, if it was.
unsafe fn expecting(pid: *const c_int, result: c_int) -> c_int {
    if result == 0 && !pid.is_null() {
        // SAFETY: the caller vouches that libc has just written it.
        engine::expect(unsafe { pid.read() } as u32);
    }
    result
}

reals! {
    PIDFD_GETPID = c"pidfd_getpid";
}

/// Registers the process that was started with this `result`, if it was, of which libc wrote a descriptor. Returns what the
/// program gets, an error's number: also from a libc without the function.
unsafe fn expecting_descriptor(descriptor: *const c_int, result: c_int) -> c_int {
    if result < 0 {
        return libc::ENOSYS;
    }
    if result == 0 && !descriptor.is_null() {
        // SAFETY: the caller vouches that libc has just written it.
        let descriptor = unsafe { descriptor.read() };
        files::forget(descriptor);
        process(descriptor).into_iter().for_each(engine::expect);
    }
    result
}

/// The process that a descriptor means, if libc says so. pidfd_getpid(3)
fn process(descriptor: c_int) -> Option<u32> {
    type ProcessId = unsafe extern "C" fn(c_int) -> c_int;
    let before = errno();
    // SAFETY: libc's function of this name has this signature; the one that stands for it ignores the argument.
    let get = unsafe { mem::transmute::<*mut c_void, ProcessId>(PIDFD_GETPID.get()) };
    // SAFETY: a number only.
    let process = unsafe { get(descriptor) };
    set_errno(before);
    u32::try_from(process).ok()
}

hooks! {
    /// posix_spawn(3).
    fn [posix_spawn] (pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Block, block: Block) -> c_int, real => {
        // SAFETY: the program's own arguments, with our environment.
        let call = |block| unsafe { real(pid, path, actions, attributes, arguments, block) };
        // SAFETY: libc writes the process id where the program asks for it.
        unsafe { expecting(pid, spawn(block, Target::At(libc::AT_FDCWD, path), call)) }
    }

    /// posix_spawnp(3).
    fn [posix_spawnp] (pid: *mut c_int, name: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Block, block: Block) -> c_int, real => {
        // SAFETY: the program's own arguments, with our environment.
        let call = |block| unsafe { real(pid, name, actions, attributes, arguments, block) };
        // SAFETY: as above; the name is a C string, which libc would read next.
        unsafe { expecting(pid, spawn(block, Target::Named(name), call)) }
    }

    /// pidfd_spawn(3).
    fn [pidfd_spawn] (pidfd: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Block, block: Block) -> c_int, real => {
        // SAFETY: the program's own arguments, with our environment.
        let call = |block| unsafe { real(pidfd, path, actions, attributes, arguments, block) };
        // SAFETY: libc writes the descriptor where the program asks for it.
        unsafe { expecting_descriptor(pidfd, spawn(block, Target::At(libc::AT_FDCWD, path), call)) }
    }

    /// pidfd_spawnp(3).
    fn [pidfd_spawnp] (pidfd: *mut c_int, name: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Block, block: Block) -> c_int, real => {
        // SAFETY: the program's own arguments, with our environment.
        let call = |block| unsafe { real(pidfd, name, actions, attributes, arguments, block) };
        // SAFETY: as above; the name is a C string, which libc would read next.
        unsafe { expecting_descriptor(pidfd, spawn(block, Target::Named(name), call)) }
    }

    /// system(3).
    fn [system] (command: *const c_char) -> c_int, real => {
        // SAFETY: the program's own argument.
        with_environment(|| unsafe { real(command) })
    }

    /// popen(3).
    fn [popen] (command: *const c_char, mode: *const c_char) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        with_environment(|| unsafe { real(command, mode) })
    }

    /// wordexp(3), which may run a shell.
    fn [wordexp] (words: *const c_char, result: *mut c_void, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        with_environment(|| unsafe { real(words, result, flags) })
    }

    /// pclose(3): libc closes the descriptor itself.
    fn [pclose] (stream: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own argument, still open.
        files::forget(unsafe { descriptor(stream) });
        // SAFETY: the program's own argument.
        unsafe { real(stream) }
    }
}
