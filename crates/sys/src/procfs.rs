//! What `/proc` says about one process (proc(5)), read without an allocation.

mod find;
mod signals;

use core::ffi::CStr;
use core::fmt::{self, Write};

pub use find::{Found, find, has_only_stack, is_executing, is_same, lives, stat};
pub use signals::{fatal_signals, ignored_signals, pending_signals, undelivered_signals};

use crate::file::read_small;

/// Clock ticks a second of `/proc/stat` and `/proc/PID/stat`; 100 on every Linux that user space can see.
pub const TICKS: u32 = 100;

/// A line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The process's id.
    pub id: u32,
    /// Its parent's; zero for the first process.
    pub parent: u32,
    /// Its process group; zero for parts of the kernel.
    pub group: u32,
    /// Its session; zero for parts of the kernel.
    pub session: u32,
    /// Its controlling terminal; zero for none.
    pub terminal: i32,
    /// The process group that has the terminal; negative without one.
    pub foreground: i32,
    /// `PF_*` of the kernel's include/linux/sched.h.
    pub flags: u64,
    /// How many threads it has.
    pub threads: u32,
    /// One letter: `R`, `S`, `D`, `T` (stopped), `t` (stopped by a tracer), `Z` (zombie), others.
    pub state: u8,
    /// When it started, in clock ticks since boot: tells a process from a later one of its id.
    pub started: u64,
    /// Processor time used by it and the children that it has waited for, in clock ticks.
    pub cpu_ticks: u64,
    /// Page faults, with and without the disk, of the same processes.
    pub faults: u64,
    /// Page faults of the process alone that had to read.
    pub major_faults: u64,
    /// Page faults without disk I/O of reaped children; zero if it has reaped none.
    pub children_faults: u64,
}

impl Stat {
    /// Returns true if the process has ended, though its parent has not reaped it yet. A process that goes on without its
    /// first thread shows as a zombie, too, but has more than one thread (proc(5), `num_threads`).
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    /// Creates what is known of a process that executes a program ([`Found::Executing`]) and started then.
    #[must_use]
    pub const fn of_executing(id: u32, started: u64) -> Self {
        Self {
            id,
            parent: 0,
            group: 0,
            session: 0,
            terminal: 0,
            foreground: -1,
            flags: 0,
            threads: 1,
            state: b'D',
            started,
            cpu_ticks: 0,
            faults: 0,
            major_faults: 0,
            children_faults: 0,
        }
    }
}

/// The parent of a process, also of one that cannot be looked at ([`Found::Executing`]); zero for the first one. From
/// `/proc/PID/status`.
#[must_use]
pub fn parent(id: u32) -> Option<u32> {
    let mut buffer = [0; 4096];
    let mut lines = read(id, "status", &mut buffer)?.split(|byte| *byte == b'\n');
    Some(number(lines.find_map(|line| line.strip_prefix(b"PPid:"))?.trim_ascii())? as u32)
}

/// As [`stat`], for one that was just found not to execute a program.
#[must_use]
pub fn stat_unguarded(id: u32) -> Option<Stat> {
    // The name has at most 64 bytes, and each of 52 numbers at most 20 digits and a blank.
    let mut buffer = [0; 1280];
    parse_stat(id, read(id, "stat", &mut buffer)?)
}

fn parse_stat(id: u32, text: &[u8]) -> Option<Stat> {
    // The second field is the name in parentheses and may itself contain any character.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let fields =
        || text[end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let field = |index: usize| number(fields().nth(index)?);
    let signed = |index: usize| core::str::from_utf8(fields().nth(index)?).ok()?.parse().ok();
    Some(Stat {
        id,
        parent: field(1)? as u32,
        group: field(2)? as u32,
        session: field(3)? as u32,
        terminal: signed(4)?,
        foreground: signed(5)?,
        flags: field(6)?,
        threads: field(17)? as u32,
        state: *fields().next()?.first()?,
        started: field(19)?,
        cpu_ticks: (11..=14).map(field).sum::<Option<u64>>()?,
        faults: (7..=10).map(field).sum::<Option<u64>>()?,
        major_faults: field(9)?,
        children_faults: field(8)?,
    })
}

/// The file `/proc/PID/io`: what a process, with the threads that it has ended and the children
/// that it has waited for, did since it was forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    /// Bytes that it read and wrote, cached or not (`rchar`, `wchar`).
    pub characters: [u64; 2],
    /// Calls that read and that wrote (`syscr`, `syscw`).
    pub calls: [u64; 2],
    /// Bytes that it caused to be read from a disk, and to be written some time.
    pub bytes: [u64; 2],
}

/// Reads `/proc/PID/io`; `None` when there is no such process, it is another user's, or it cannot be looked at now
/// ([`Found::Executing`]).
#[must_use]
pub fn io(id: u32) -> Option<Io> {
    if is_executing(id) {
        return None;
    }
    let mut buffer = [0; 512];
    let text = read(id, "io", &mut buffer)?;
    // The kernel's order is this one.
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut labelled =
        |label: &[u8]| lines.find_map(|line| number(line.strip_prefix(label)?.trim_ascii()));
    let mut both = |one, other| Some([labelled(one)?, labelled(other)?]);
    Some(Io {
        characters: both(b"rchar:", b"wchar:")?,
        calls: both(b"syscr:", b"syscw:")?,
        bytes: both(b"read_bytes:", b"write_bytes:")?,
    })
}

/// Resident memory of a process, in pages: all of it, and of that what files and shared memory back. From
/// `/proc/PID/statm`; `None` when there is no such process.
#[must_use]
pub fn resident(id: u32) -> Option<(u64, u64)> {
    let mut buffer = [0; 256];
    let text = read(id, "statm", &mut buffer)?;
    let mut fields = text.split(u8::is_ascii_whitespace).map(number).skip(1);
    Some((fields.next()??, fields.next()??))
}

/// Calls `each` with the children of a process's first thread that have not been reaped, from
/// `/proc/PID/task/PID/children` (proc(5), `CONFIG_PROC_CHILDREN`): some 500 at most, and none
/// where the kernel lacks the file. Far cheaper than reading all processes, but incomplete: other
/// threads have children too.
pub fn children(id: u32, each: impl FnMut(u32)) {
    let mut buffer = [0; 4096];
    let text = read(id, format_args!("task/{id}/children"), &mut buffer).unwrap_or_default();
    // Each number is followed by a blank; what a full buffer has cut off is none.
    let whole = text.iter().rposition(|byte| *byte == b' ').map_or(&[][..], |end| &text[..end]);
    whole.split(|byte| *byte == b' ').filter_map(number).map(|id| id as u32).for_each(each);
}

fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// `/proc/PID/name`'s beginning.
fn read(id: u32, name: impl fmt::Display, buffer: &mut [u8]) -> Option<&[u8]> {
    let length = read_small(path(id, name)?.as_c_str(), buffer).ok()?;
    buffer.get(..length)
}

/// The path `/proc/PID/name`.
fn path(id: u32, name: impl fmt::Display) -> Option<Path> {
    let mut path = Path { bytes: [0; 48], length: 0 };
    write!(path, "/proc/{id}/{name}\0").ok()?;
    Some(path)
}

/// A path short enough for the stack.
struct Path {
    bytes: [u8; 48],
    length: usize,
}

impl Path {
    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_name_of_any_characters() {
        let line = b"77 (a) R (b) S 5 77 77 0 -1 4194304 10 1 3 0 40 2 5 1 20 0 1 0 12345 999 1\n";
        let found = parse_stat(77, line).unwrap();
        let wanted = Stat {
            id: 77,
            parent: 5,
            group: 77,
            session: 77,
            terminal: 0,
            foreground: -1,
            flags: 4_194_304,
            threads: 1,
            state: b'S',
            started: 12345,
            cpu_ticks: 48,
            faults: 14,
            major_faults: 3,
            children_faults: 1,
        };
        assert_eq!(found, wanted);
        assert_eq!(parse_stat(77, b"77 (cut"), None);
        assert_eq!(parse_stat(77, b"77 (cut) S 5 77"), None);
    }

    #[test]
    fn this_process() {
        let own = stat(std::process::id()).unwrap();
        assert_eq!(own.id, std::process::id());
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert_eq!(parent(own.id), Some(own.parent));
        assert!(own.started > 0 && !own.has_ended());
        let before = io(std::process::id()).unwrap();
        let text = std::fs::read("/proc/self/status").unwrap();
        let after = io(std::process::id()).unwrap();
        assert!(after.characters[0] >= before.characters[0] + text.len() as u64);
        assert!(after.calls[0] > before.calls[0]);
        assert_eq!(stat(u32::MAX >> 1), None);
        assert_eq!(io(u32::MAX >> 1), None);
        let (all, shared) = resident(std::process::id()).unwrap();
        assert!(all > shared && shared > 0);
        assert_eq!(resident(u32::MAX >> 1), None);
    }

    #[test]
    fn children_of_the_first_thread() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 100 & sleep 100 & wait"])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut found = std::vec::Vec::new();
        children(shell.id(), |child| found.push(child));
        assert_eq!(found.len(), 2, "{found:?}");
        for child in found {
            assert_eq!(stat(child).unwrap().parent, shell.id());
            // SAFETY: kill(2) takes two numbers; the process is a child of our child.
            assert_eq!(unsafe { libc::kill(child as i32, libc::SIGKILL) }, 0);
        }
        shell.wait().unwrap();
        children(u32::MAX >> 1, |child| panic!("{child} is nobody's child"));
    }
}
