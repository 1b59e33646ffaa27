//! Processes that go on as copies of this one, without exec(2).
//!
//! # Safety
//! Every function that copies the process first makes sure that it has one thread: the copy then
//! lacks no thread that could hold a lock, and may do everything that the original may.
#![allow(unsafe_code, reason = "fork(2) without exec")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

/// Starts a child that does `work` and ends.
///
/// # Errors
/// As fork(2); `Unsupported` in a program with several threads.
pub fn child(work: impl FnOnce()) -> io::Result<()> {
    only_thread()?;
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => end_after(work),
        _ => Ok(()),
    }
}

/// Starts a grandchild that does `work` and ends. It belongs to nobody: its parent has ended, it
/// has a session of its own without a terminal, the root directory, standard streams that lead
/// nowhere, and of this process's descriptors only `kept`, which it is given.
///
/// This process gets no signal from its child's end, not even one that waits until it is let in.
///
/// # Errors
/// As fork(2); `Unsupported` in a program with several threads.
pub fn detached(kept: OwnedFd, work: impl FnOnce(File)) -> io::Result<()> {
    only_thread()?;
    // SAFETY: clone(2) without flags is fork(2) whose child's end sends no signal. What glibc's
    // fork does besides is for threads and locks; the child goes straight on to that function.
    match unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => end_after(|| {
            let _ = rustix::process::setsid();
            let _ = rustix::process::chdir("/");
            let _ = child(|| work(forget_all_but(kept)));
        }),
        pid => wait_for(pid as i32),
    }
}

fn end_after(work: impl FnOnce()) -> ! {
    work();
    // SAFETY: ends the copy without running what the original registered for its end.
    unsafe { libc::_exit(0) }
}

fn only_thread() -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() == 1 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "it must be started before any thread"))
}

fn wait_for(pid: i32) -> io::Result<()> {
    // SAFETY: no status is asked for. `__WALL` waits also for a child that sends no signal.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// Closes every descriptor but one, whose number becomes 3.
fn forget_all_but(kept: OwnedFd) -> File {
    let number = kept.into_raw_fd();
    // SAFETY: descriptors are numbers here: nothing in this copy uses those that are closed, and
    // the returned file owns the only one that is left, whichever number it has in the end.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(nowhere, standard);
        }
        let number = match libc::dup2(number, 3) {
            -1 => number,
            number => number,
        };
        if libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0) != 0 {
            close_listed();
        }
        std::os::fd::FromRawFd::from_raw_fd(number)
    }
}

/// For kernels before 5.9, which do not know close_range(2).
fn close_listed() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 3) {
        // SAFETY: as in `forget_all_but`; the listing's own descriptor is closed already.
        unsafe { libc::close(number) };
    }
}

/// Closes this copy's descriptor of a file that the original goes on using.
pub fn close(file: &File) {
    // SAFETY: the copy ends by _exit(2), so nobody closes the number, or another file's, again.
    unsafe { libc::close(file.as_raw_fd()) };
}

/// Ignores signals from now on.
pub fn ignore(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: only sets the disposition of a signal to ignored, in a one-threaded copy.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_in_a_program_with_threads() {
        // The test harness has several.
        let error = child(|| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let kept = File::open("/dev/null").unwrap().into();
        assert_eq!(detached(kept, drop).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
