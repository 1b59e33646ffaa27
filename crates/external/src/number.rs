//! Under which number a process goes in its class.
//!
//! Our library writes its process into the class by the number that getpid(2) gave it. In a PID namespace of
//! its own (pid_namespaces(7)) that means another process outside, or none, so who is listed must show
//! that he is one of the class; and those in such namespaces are found as children of members.

use std::fs;
use std::path::{Path, PathBuf};

use discnice_sys::procfs;

use crate::process;

/// The library's file.
const LIBRARY: &str = "libdiscnice.so";

/// A child of a member that goes by another number than ours, and may not have given it to the class yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// Its number here.
    pub id: u32,
    /// The number that its own namespace knows it by.
    pub number: u32,
    /// When it started.
    pub started: u64,
    /// Its parent's number here.
    pub parent: u32,
}

impl Stranger {
    /// The process `id`, if it is in a namespace of its own.
    #[must_use]
    pub fn meet(id: u32) -> Option<Self> {
        let space = |id: &str| fs::read_link(format!("/proc/{id}/ns/pid")).ok();
        if space(&id.to_string())? == space("self")? {
            return None;
        }
        let stat = procfs::stat(id)?;
        let number = process::number_inside(id)?;
        Some(Self { id, number, started: stat.started, parent: stat.parent })
    }

    /// Whether it still runs.
    #[must_use]
    pub fn lives(&self) -> bool {
        procfs::stat(self.id).is_some_and(|stat| !stat.has_ended() && stat.started == self.started)
    }
}

/// Whether the process is our own command, on its way to the program that it starts, or our library is in it.
#[must_use]
pub fn is_ours(id: u32) -> bool {
    let program = |id: &str| file_name(&fs::read_link(format!("/proc/{id}/exe")).ok()?);
    let program_is_ours =
        program(&id.to_string()).is_some_and(|name| Some(name) == program("self"));
    program_is_ours
        || fs::read_to_string(format!("/proc/{id}/maps")).is_ok_and(|maps| maps.contains(LIBRARY))
}

/// The name of a program, also of one that was replaced since.
fn file_name(path: &Path) -> Option<PathBuf> {
    Some(path.file_name()?.to_str()?.trim_end_matches(" (deleted)").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_is_listed_by_anothers_number_is_not_taken_for_him() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(is_ours(std::process::id()), "the same program");
        assert!(!is_ours(child.id()), "any program of the user");
        assert_eq!(Stranger::meet(child.id()), None, "it has the number that it knows");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn numbers_inside_are_known() {
        let mut outer = Command::new("unshare").args(["-Urpf", "sleep", "100"]).spawn().unwrap();
        let found = (0..200).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if outer.try_wait().unwrap().is_some() {
                return Some(None);
            }
            let children = format!("/proc/{0}/task/{0}/children", outer.id());
            let child = fs::read_to_string(children).ok()?.trim().parse().ok()?;
            Some(Some(child))
        });
        // Some systems forbid ordinary users such namespaces.
        if let Some(Some(child)) = found {
            let stranger = Stranger::meet(child).unwrap();
            assert_eq!((stranger.id, stranger.number, stranger.parent), (child, 1, outer.id()));
            assert!(stranger.lives());
            let first = rustix::process::Pid::from_raw(child.cast_signed()).unwrap();
            rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        }
        let _ = outer.kill();
        outer.wait().unwrap();
    }
}
