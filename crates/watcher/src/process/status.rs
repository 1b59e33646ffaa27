//! What `/proc` says of a process: its state, threads, names, tracer, user and signals.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use discnice_sys::procfs;

/// Flags of a thread that the kernel made for a program's io_uring (`PF_IO_WORKER`,
/// `PF_USER_WORKER`, include/linux/sched.h): it cannot be traced, and it stops for want of work
/// when the program's own threads do.
pub const WORKER: u64 = 0x10 | 0x4000;

/// Whether the account of a process may not be read by us. ptrace(2), access mode checking
#[must_use]
pub fn is_hidden(id: u32) -> bool {
    if procfs::is_executing(id) {
        return false;
    }
    fs::read(format!("/proc/{id}/io"))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Returns true if the process runs; one that has ended may exist for long, if it is not reaped.
#[must_use]
pub fn lives(id: u32) -> bool {
    procfs::lives(id)
}

/// Returns true if the process runs and is called as this one: a later process with the number of an earlier policyd is not
/// taken for that.
#[must_use]
pub fn is_colleague(id: u32) -> bool {
    lives(id) && name(id) == name(std::process::id())
}

/// Returns the tracer of the process.
#[must_use]
pub fn tracer(id: i32) -> Option<i32> {
    Status::read(id)?.number("TracerPid").filter(|tracer| *tracer != 0)
}

/// The process that a thread belongs to.
#[must_use]
pub fn leader(thread: i32) -> Option<i32> {
    Status::read(thread)?.number("Tgid")
}

/// The user that started a process: its real one, which a set-user-ID program does not change.
#[must_use]
pub fn real_user(id: i32) -> Option<u32> {
    Status::read(id)?.number("Uid").map(i32::cast_unsigned)
}

/// Whether a process executes the program that this one does.
#[must_use]
pub fn is_this_program(id: u32) -> bool {
    let own = fs::read_link("/proc/self/exe").ok();
    own.is_some() && link(id, "exe").ok() == own
}

/// Reads a link in the folder of a process.
///
/// # Errors
/// As readlink(2); `ResourceBusy` while the process executes a program ([`procfs::Found::Executing`]).
pub fn link(id: u32, name: &str) -> io::Result<PathBuf> {
    if procfs::is_executing(id) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    fs::read_link(format!("/proc/{id}/{name}"))
}

/// Reads what a process has mapped, of which the names of files may be any bytes; `None` if it may not be looked at, or executes a program.
#[must_use]
pub fn maps(id: u32) -> Option<String> {
    if procfs::is_executing(id) {
        return None;
    }
    let text = fs::read(format!("/proc/{id}/maps")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Reads the command line of a living process; empty for a kernel thread.
pub(crate) fn command_line(id: u32) -> Option<Vec<u8>> {
    read_file(id, "cmdline", LENGTH, LENGTH as u64)
}

/// How often a thread has given up the processor.
#[must_use]
pub fn voluntary_switches(thread: u32) -> Option<u64> {
    let switches = Status::read(thread.cast_signed())?.number("voluntary_ctxt_switches")?;
    u64::try_from(switches).ok()
}

/// Reads a file of /proc, of at most `most` bytes, with one read(2) if it has fewer than `room`: it tells no size, so that
/// [`fs::read`] begins with 32 bytes.
pub(crate) fn read_file(id: u32, name: &str, room: usize, most: u64) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(room);
    let file = File::open(format!("/proc/{id}/{name}")).ok()?;
    file.take(most).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Usual size of `/proc/PID/status`, and the most that is read of a command line, in bytes.
const LENGTH: usize = 4096;

/// `/proc/PID/status` (proc(5)).
pub(super) struct Status(String);

impl Status {
    pub(super) fn read(id: i32) -> Option<Self> {
        let text = read_file(u32::try_from(id).ok()?, "status", LENGTH, u64::MAX)?;
        // The name in it may be any bytes.
        Some(Self(String::from_utf8_lossy(&text).into_owned()))
    }

    /// The first number of a line.
    pub(super) fn number(&self, label: &str) -> Option<i32> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

/// The number by which the innermost PID namespace of the process knows it.
#[must_use]
pub fn number_inside(id: u32) -> Option<u32> {
    let status = Status::read(id.cast_signed())?;
    let numbers = status.0.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Whether a signal waits to be received by the process or one of its threads.
#[must_use]
pub fn is_signalled(id: u32) -> bool {
    threads(id).any(|thread| procfs::pending_signals(thread) != 0)
}

/// The process's name as the kernel has it (`/proc/PID/comm`); empty if it has ended.
#[must_use]
pub fn name(id: u32) -> Vec<u8> {
    let mut name = fs::read(format!("/proc/{id}/comm")).unwrap_or_default();
    name.truncate(name.trim_ascii_end().len());
    name
}

/// Whether a signal waits that ends the process.
#[must_use]
pub fn is_doomed(id: u32) -> bool {
    threads(id).any(|thread| procfs::fatal_signals(thread) != 0)
}

/// The ids of the process's threads.
pub fn threads(id: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a thread of the process, other than a worker of the kernel, is in one of these states.
pub(crate) fn has_thread_in(id: u32, states: &[u8]) -> bool {
    threads_in(id, states).next().is_some()
}

/// How many threads of the process, other than workers of the kernel, wait for a disk (or for another program to be
/// executed, or for a file system in user space).
pub(crate) fn waiting_threads(id: u32) -> u32 {
    u32::try_from(threads_in(id, b"D").count()).unwrap_or(u32::MAX)
}

fn threads_in(id: u32, states: &[u8]) -> impl Iterator<Item = procfs::Stat> {
    let is_executing = procfs::is_executing(id);
    threads(id)
        .filter(move |_| !is_executing)
        .filter_map(procfs::stat_unguarded)
        .filter(move |stat| states.contains(&stat.state) && stat.flags & WORKER == 0)
}

/// Whether stopping the process by a signal would show in a terminal: a shell with job control
/// would report it as stopped, and take the terminal back.
#[must_use]
pub fn is_in_foreground(id: u32) -> bool {
    procfs::stat(id).is_some_and(|stat| {
        stat.terminal != 0 && i64::from(stat.foreground) == i64::from(stat.group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_any_name_is_known() {
        let own = std::process::id().cast_signed();
        let user = rustix::process::getuid().as_raw();
        for name in [c"plain", c"caf\xe9", c"two\nlines"] {
            let named = std::thread::spawn(move || {
                rustix::thread::set_name(name).unwrap();
                let thread = rustix::thread::gettid().as_raw_nonzero().get();
                (leader(thread), real_user(thread), number_inside(thread.cast_unsigned()))
            });
            let (leader, owner, inside) = named.join().unwrap();
            assert_eq!((leader, owner), (Some(own), Some(user)), "{name:?}");
            assert!(inside.is_some(), "{name:?}");
        }
    }

    /// A thread that has made a process by vfork(2) waits as one that waits for a disk does.
    #[test]
    fn threads_that_wait_are_counted_and_those_that_sleep_are_not() {
        use std::os::unix::process::CommandExt;
        let script = "import ctypes, os, platform, threading, time\n\
            clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n\
            def wait():\n    ctypes.CDLL(None).syscall(clone, 0x4000 | 17, 0, 0, 0, 0)\n    time.sleep(100)\n\
            for _ in range(3): threading.Thread(target=wait).start()\n\
            time.sleep(100)";
        let mut command = std::process::Command::new("python3");
        let mut child = command.args(["-c", script]).process_group(0).spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while waiting_threads(child.id()) < 3 && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let found = waiting_threads(child.id());
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(found, 3);
    }

    #[test]
    fn a_later_process_of_a_number_is_no_colleague() {
        assert!(is_colleague(std::process::id()));
        let mut other = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(lives(other.id()) && !is_colleague(other.id()));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_a_program_with_any_name_maps_is_known() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(program).arg("100").spawn().unwrap();
        assert!(discnice_processes::tree::can_be_looked_at(child.id()));
        let found = maps(child.id()).unwrap_or_default();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.lines().any(|line| line.contains("/caf")), "{found}");
    }
}
