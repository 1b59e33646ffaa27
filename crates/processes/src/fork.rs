//! Processes that go on as copies of this one, without exec(2).
//!
//! # Safety
//! Every function that copies the process first makes sure that it has one thread, besides those of
//! [`relay`]: the copy then lacks no thread that could hold a lock, and may do everything that the original may.
#![allow(unsafe_code, reason = "fork(2) without exec")]

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use discnice_sys::{deadline, futex, time};
use discnice_units::{Moment, Nanos};

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

/// Starts a grandchild that does `work` and exits. It is an orphan in a session of its own without
/// a terminal, with the root directory as its working directory, standard streams open on
/// /dev/null, and of this process's descriptors only `kept`, which `work` receives.
///
/// This process gets no signal when its child ends, not even a pending blocked one.
///
/// # Errors
/// As fork(2); `Unsupported` in a program with several threads.
pub fn detached(kept: OwnedFd, work: impl FnOnce(File)) -> io::Result<()> {
    only_thread()?;
    // SAFETY: clone(2) without flags is fork(2) without a signal at the child's end. What glibc's
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

/// Does `work` in a child, which has a session of its own: neither a terminal's ^Z nor a stop signal to this process or its group
/// reaches it. If the child is killed (as it is when it is stopped while it holds others, [`deadline`]) another one begins
/// anew, as soon as this process, its keeper, runs itself. `tick` is called every so often and may end it all. The child ends
/// with this process.
///
/// Returns when the child has ended by itself, or after a signal that asked this process to end, with that signal.
///
/// # Errors
/// As fork(2); `Unsupported` in a program with several threads.
pub fn kept(
    every: Duration,
    mut tick: impl FnMut() -> ControlFlow<()>,
    mut work: impl FnMut(),
) -> io::Result<Option<i32>> {
    only_thread()?;
    let before = block();
    // If the signal was ignored, a child's end would go unreported.
    // SAFETY: sets a disposition, in a process of one thread.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let mut ending = None;
    let mut worker = start_worker(&before, &mut work)?;
    let mut begun = Instant::now();
    loop {
        match wait_for_signal(every) {
            Some(libc::SIGCHLD) => {}
            Some(signal) => ending = ending.or(Some(signal)),
            None if tick().is_break() => ending = ending.or(Some(0)),
            None => {}
        }
        if ending.is_some() {
            // SAFETY: our own child, not yet waited for.
            unsafe { libc::kill(worker, libc::SIGTERM) };
        }
        match ended(worker) {
            None => {}
            Some(status) if libc::WIFEXITED(status) || ending.is_some() => break,
            Some(_) => {
                // One that cannot begin need not be tried without a break.
                std::thread::sleep(AGAIN.saturating_sub(begun.elapsed()));
                worker = start_worker(&before, &mut work)?;
                begun = Instant::now();
            }
        }
    }
    set_mask(&before);
    Ok(ending.filter(|signal| *signal > 0))
}

/// A worker that was killed is followed by another one after so long at least.
const AGAIN: Duration = Duration::from_millis(200);

fn start_worker(mask: &libc::sigset_t, work: &mut impl FnMut()) -> io::Result<i32> {
    let keeper = std::process::id();
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => end_after(|| {
            // SAFETY: changes only this copy: it ends with its parent.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
            if std::os::unix::process::parent_id() == keeper {
                let _ = rustix::process::setsid();
                set_mask(mask);
                // Without timers a stopped worker holds on, as the kernel has none to give.
                let _ = deadline::begin();
                work();
            }
        }),
        worker => Ok(worker),
    }
}

/// What a keeper waits for.
fn awaited() -> libc::sigset_t {
    // SAFETY: all-zero is a valid set, which the calls fill.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// Blocks what a keeper waits for; returns what was blocked before.
fn block() -> libc::sigset_t {
    let set = awaited();
    // SAFETY: reads one set and writes another.
    unsafe {
        let mut before = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
        before
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: reads one set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// Waits for one of the signals that [`kept`] blocks; `None` when none came within the time.
fn wait_for_signal(time: Duration) -> Option<i32> {
    let time = libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let set = awaited();
    // SAFETY: reads a set and a time; no information is asked for.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const time) };
    (signal > 0).then_some(signal)
}

/// How a child ended, if it has.
fn ended(child: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: waitpid(2) writes the status.
    let found = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
    // One that is not there to be waited for, as SIGCHLD is ignored, counts as ended by itself.
    match found {
        0 => None,
        -1 => Some(0),
        _ => Some(status),
    }
}

fn end_after(work: impl FnOnce()) -> ! {
    // They are not in this copy.
    RELAYS.store(0, Ordering::Release);
    work();
    // SAFETY: ends the copy without running what the original registered for its end.
    unsafe { libc::_exit(0) }
}

/// Threads of [`relay`].
static RELAYS: AtomicUsize = AtomicUsize::new(0);
/// Time after which a relay looks whether what it has told was heard.
const HEARD: Nanos = Nanos::from_millis(5);
/// What a relay waits on that has nothing more to do.
static NEVER: AtomicU32 = AtomicU32::new(0);
/// Longest wait of a relay.
const LONG: Nanos = Nanos(3_600 * Nanos::SECOND.0);

/// Starts a thread that writes a byte to `tell` whenever the word is not zero, until nothing reads them. From then on it
/// allocates nothing and holds no lock, so that this process may be copied without it.
///
/// # Errors
/// No thread can be had.
pub fn relay(word: &'static AtomicU32, mut tell: UnixStream) -> io::Result<()> {
    let known = RELAYS.load(Ordering::Acquire);
    let work = move || {
        RELAYS.fetch_add(1, Ordering::Release);
        loop {
            let now = time::now();
            let told = word.load(Ordering::Relaxed);
            if told != 0 && tell.write_all(&[0]).is_err() {
                // To end it would give memory back, under a lock.
                let _ = futex::wait(&NEVER, 0, Moment(u64::MAX >> 1));
                continue;
            }
            let _ = futex::wait(word, told, now.plus(if told == 0 { LONG } else { HEARD }));
        }
    };
    thread("announcements", 1 << 16, work)?;
    while RELAYS.load(Ordering::Acquire) == known {
        std::thread::yield_now();
    }
    Ok(())
}

/// Starts a thread that no signal is delivered to.
///
/// # Errors
/// No thread can be had.
pub fn thread(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // A thread inherits the mask, so no signal can come before it sets its own.
    let before = all_blocked();
    let started = Builder::new().name(name.to_owned()).stack_size(stack).spawn(work);
    set_mask(&before);
    started
}

/// Blocks all signals; returns what was blocked before.
fn all_blocked() -> libc::sigset_t {
    // SAFETY: both sets are written before they are read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Whether this thread is the only one, but for those that may be missing in a copy.
fn only_thread() -> io::Result<()> {
    let relays = RELAYS.load(Ordering::Acquire);
    if std::fs::read_dir("/proc/self/task")?.count() == 1 + relays {
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

/// Closes every descriptor but one, and gives that one number 3.
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
    // SAFETY: the copy ends by _exit(2), so the number, or another file's, is not closed again.
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
