//! Which process has a number, without waiting for one that executes a program.
//!
//! A process that executes a program closes descriptors (`O_CLOEXEC`) with a lock of the kernel held, and may wait there for
//! whatever serves a file, for ever. Meanwhile whatever reads its `stat`, `io`, `maps`, `wchan`, `syscall` or `environ`, or
//! follows a link in its folder, waits as well, and only SIGKILL ends that; before Linux 6.18 `stat` and links do not wait.
//! `statm`, `status`, `cmdline`, `comm`, `cgroup`, `mountinfo`, `fdinfo` and the lists of `fd` and `task` never wait.

use super::{Stat, number, read, stat_unguarded};

/// What a number was found to mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// This process, which may have ended.
    Process(Stat),
    /// One that executes a program and cannot be looked at before it has closed its descriptors.
    Executing,
    /// No process.
    Nothing,
}

/// Looks which process has a number, without waiting for one that executes a program.
#[must_use]
pub fn find(id: u32) -> Found {
    let mut buffer = [0; 256];
    match read(id, "statm", &mut buffer) {
        // All processes have that file, those that have ended, too.
        None => Found::Nothing,
        Some(statm) if has_only_stack(statm) => Found::Executing,
        Some(_) => stat_unguarded(id).map_or(Found::Nothing, Found::Process),
    }
}

/// Reads `/proc/PID/stat`, also of a thread; `None` when there is no such process, or it cannot be looked at now
/// ([`Found::Executing`]).
#[must_use]
pub fn stat(id: u32) -> Option<Stat> {
    match find(id) {
        Found::Process(stat) => Some(stat),
        Found::Executing | Found::Nothing => None,
    }
}

/// Returns true if a process exists and has not ended.
#[must_use]
pub fn lives(id: u32) -> bool {
    match find(id) {
        Found::Process(stat) => !stat.has_ended(),
        Found::Executing => true,
        Found::Nothing => false,
    }
}

/// Returns true if the process that started then exists and has not ended. When one that cannot be looked at started is not
/// known; it is taken for that one.
#[must_use]
pub fn is_same(id: u32, started: u64) -> bool {
    match find(id) {
        Found::Process(stat) => !stat.has_ended() && stat.started == started,
        Found::Executing => true,
        Found::Nothing => false,
    }
}

/// Returns true if a process, or that of a thread, executes a program and may be closing descriptors, so that looking at it
/// may wait.
#[must_use]
pub fn is_executing(id: u32) -> bool {
    let mut buffer = [0; 256];
    read(id, "statm", &mut buffer).is_some_and(has_only_stack)
}

/// Whether `/proc/PID/statm` is of a memory that consists of a new program's stack: the memory of one that runs has code,
/// a part of the kernel has none at all.
#[must_use]
pub fn has_only_stack(statm: &[u8]) -> bool {
    let mut fields = statm.split(u8::is_ascii_whitespace).map(number);
    let mut field = |skipped| fields.nth(skipped).flatten();
    // size resident shared text lib data dt
    let (size, text, data) = (field(0), field(2), field(1));
    size.is_some_and(|size| size > 0) && text == Some(0) && data == size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_with_nothing_but_a_stack_is_that_of_a_program_to_be() {
        assert!(has_only_stack(b"1 1 0 0 0 1 0\n") && has_only_stack(b"513 300 0 0 0 513 0\n"));
        let others =
            [&b"619 329 304 1 0 89 0\n"[..], b"0 0 0 0 0 0 0\n", b"3 1 0 0 0 1 0\n", b"3 1", b""];
        assert!(others.iter().all(|statm| !has_only_stack(statm)));
    }

    #[test]
    fn this_process_is_found() {
        let own = stat(std::process::id()).unwrap();
        // Its state and its faults are others at each look.
        let Found::Process(found) = find(own.id) else { panic!("this process is not found") };
        assert_eq!((found.id, found.started), (own.id, own.started));
        assert!(lives(own.id) && is_same(own.id, own.started) && !is_same(own.id, 1));
        assert!(!is_executing(own.id));
        let none = u32::MAX >> 1;
        assert_eq!(find(none), Found::Nothing);
        assert!(stat(none).is_none() && !lives(none) && !is_same(none, 0) && !is_executing(none));
    }
}
