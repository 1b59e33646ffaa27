//! Asking policyd, and starting it.
#![allow(unsafe_code, reason = "fork(2): the daemon must not become the command's child")]

use std::ffi::{CString, c_char};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use discnice_sys::block::BlockId;

use crate::daemon::singleton;
use crate::daemon::tuning;

/// The line that asks how many rules are followed.
pub(crate) const RULES: &[u8] = b"rules";

/// Whether to wait until policyd has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// It watches when this returns.
    Awaited,
    /// It will as soon as it can, which is not waited for for long.
    Unneeded,
}

/// Asks policyd to watch the class in this block; starts `program` with the argument `policyd` if
/// none answers.
///
/// # Errors
/// There is no runtime directory, the daemon cannot be started, or it does not answer.
pub fn watch(block: BlockId, program: &Path, confirmation: Confirmation) -> io::Result<()> {
    let place = singleton::DaemonFiles::find()?;
    let path = place.socket();
    match UnixStream::connect(&path).and_then(|stream| ask(stream, block, confirmation)) {
        Ok(()) => return Ok(()),
        // One that hangs, or that refuses, is still there.
        Err(error) if is_there(&error) => return Err(error),
        Err(_) => {}
    }
    start(program, block)?;
    let unneeded = confirmation == Confirmation::Unneeded;
    let deadline = Instant::now()
        + if unneeded { tuning::daemon::CLIENT_SOON } else { tuning::daemon::CLIENT_START };
    loop {
        match UnixStream::connect(&path) {
            Ok(stream) => return ask(stream, block, confirmation),
            // It looks at all classes when it starts.
            Err(_) if unneeded && Instant::now() > deadline => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(tuning::daemon::CLIENT_RETRY),
        }
    }
}

/// Has the policyd that is there watch the class in this block.
///
/// # Errors
/// There is none, it does not answer, or there is no such class.
pub(crate) fn hand_over(place: &singleton::DaemonFiles, block: BlockId) -> io::Result<()> {
    UnixStream::connect(place.socket()).and_then(|stream| ask(stream, block, Confirmation::Awaited))
}

/// How many rules policyd follows; `None` if it is one that knows no rules. Starts none.
///
/// # Errors
/// There is none, or it does not answer.
pub fn rules() -> io::Result<Option<usize>> {
    let mut stream = UnixStream::connect(singleton::DaemonFiles::find()?.socket())?;
    stream.set_read_timeout(Some(tuning::daemon::CLIENT_START))?;
    stream.write_all(&[RULES, b"\n"].concat())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(late)?;
    Ok(line.trim_end().strip_prefix("rules ").and_then(|count| count.parse().ok()))
}

/// Returns true if the error shows that a daemon is there.
fn is_there(error: &io::Error) -> bool {
    use io::ErrorKind::{Other, TimedOut, WouldBlock};
    matches!(error.kind(), Other | TimedOut | WouldBlock)
}

fn ask(mut stream: UnixStream, block: BlockId, confirmation: Confirmation) -> io::Result<()> {
    stream.set_write_timeout(Some(tuning::daemon::CLIENT_START))?;
    let patience = if confirmation == Confirmation::Unneeded {
        tuning::daemon::CLIENT_ANSWER
    } else {
        tuning::daemon::CLIENT_START
    };
    stream.set_read_timeout(Some(patience))?;
    // In one piece: at each, the daemon would wake up.
    stream.write_all(format!("watch {block:x}\n").as_bytes())?;
    let mut line = String::new();
    match BufReader::new(stream).read_line(&mut line) {
        // It was just killed, with its socket still there.
        Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
        Err(error) if confirmation == Confirmation::Unneeded && is_there(&error) => return Ok(()),
        read => drop(read.map_err(late)?),
    }
    if line.starts_with("watching") {
        return Ok(());
    }
    Err(io::Error::other(format!("policyd says {:?}", line.trim_end())))
}

/// An answer that did not come in time, in words; another error as it is.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        return io::Error::new(io::ErrorKind::TimedOut, "its answer takes too long");
    }
    error
}

/// Starts the daemon as an orphan: a child that the command does not know of would show when it
/// waits for any of its own.
fn start(program: &Path, block: BlockId) -> io::Result<()> {
    let program = CString::new(program.as_os_str().as_bytes())?;
    let class = CString::new(format!("{block:x}"))?;
    let words = [program.as_ptr(), c"policyd".as_ptr(), c"--watch".as_ptr(), class.as_ptr()];
    let mut arguments = [std::ptr::null(); 5];
    arguments[..4].copy_from_slice(&words);
    let environment = environment();
    let block: Vec<*const c_char> =
        environment.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: only one thread of ours exists where this is used, and between fork and exec only
    // system calls are made, on memory that was prepared before.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: as above; neither call returns to Rust code.
        0 => unsafe {
            if libc::setsid() >= 0 && libc::fork() == 0 {
                become_daemon(program.as_ptr(), arguments.as_ptr(), block.as_ptr());
            }
            libc::_exit(0)
        },
        _ => {
            // SAFETY: our own child, which ends at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(())
        }
    }
}

/// Our environment, but for what would make the daemon a member of the class that we are in. An empty
/// `DISCNICE` keeps a library that regulates us from naming its class there.
fn environment() -> Vec<CString> {
    let kept = std::env::vars_os()
        .filter(|(name, _)| name != "LD_PRELOAD" && name != "DISCNICE")
        .filter_map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.as_bytes()).ok()
        });
    kept.chain([c"DISCNICE=".to_owned()]).collect()
}

/// # Safety
/// In a forked child; the pointers are a C string and two lists that end with a null pointer.
unsafe fn become_daemon(
    program: *const c_char,
    arguments: *const *const c_char,
    block: *const *const c_char,
) -> ! {
    // SAFETY: system calls on descriptors of this process; the caller vouches for the pointers.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        // A process that waits for the end of a pipe of the command must not wait for the daemon's.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        libc::chdir(c"/".as_ptr());
        libc::execve(program, arguments, block);
        libc::_exit(127)
    }
}
