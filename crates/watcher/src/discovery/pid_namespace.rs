//! The number by which a process goes in its class.
//!
//! Our library writes its process into the class by the number that getpid(2) gave it. In a PID
//! namespace of its own (pid_namespaces(7)) that means another process outside, or none. So a
//! listed process must prove that it is one of the class, and those in such namespaces are found as
//! children of members.

use std::collections::HashMap;
use std::fs;

use discnice_ledger::token::VARIABLE;
use discnice_ledger::{Class, Token};
use discnice_sys::block::{BlockId, Store};
use discnice_sys::procfs;

use crate::discovery::newcomer::Newcomer;
use crate::process;

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
        if process::link(id, "ns/pid").ok()? == fs::read_link("/proc/self/ns/pid").ok()? {
            return None;
        }
        let stat = procfs::stat(id)?;
        let number = process::number_inside(id)?;
        Some(Self { id, number, started: stat.started, parent: stat.parent })
    }

    /// Whether it still runs.
    #[must_use]
    pub fn lives(&self) -> bool {
        procfs::is_same(self.id, self.started)
    }
}

/// The members of a class that go by other numbers than ours.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// Processes in namespaces of their own that are not listed yet.
    strangers: Vec<Stranger>,
    /// Numbers that the class lists and that mean such members, with what their ids are.
    inside: HashMap<u32, u32>,
}

impl Namespaces {
    /// Returns true if the class lists a member by this number that has another id here.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.inside.contains_key(&number)
    }

    /// The id of the member that the class lists by this number.
    pub(crate) fn id_of(&self, number: u32) -> u32 {
        self.inside.get(&number).copied().unwrap_or(number)
    }

    /// Remembers a process if it is in a namespace of its own.
    pub(crate) fn meet(&mut self, newcomer: &Newcomer) {
        self.strangers.extend(newcomer.look(Stranger::meet).flatten());
    }

    /// Returns true if processes are remembered that the class may list later.
    pub(crate) fn has_strangers(&self) -> bool {
        !self.strangers.is_empty()
    }

    /// The living processes that the class may list by now.
    pub(crate) fn strangers(&mut self) -> Vec<Stranger> {
        self.strangers.retain(Stranger::lives);
        self.strangers.clone()
    }

    /// Notes that the class lists this process.
    pub(crate) fn note_listed(&mut self, stranger: &Stranger) {
        self.strangers.retain(|other| other.id != stranger.id);
        self.inside.insert(stranger.number, stranger.id);
    }

    /// Forgets the member that was listed by this number.
    pub(crate) fn forget(&mut self, number: u32) {
        self.inside.remove(&number);
    }
}

/// Whether the process has this block mapped, and it means the same block there as here. Our
/// library and our command map the class that they list themselves in. proc_pid_maps(5)
pub(crate) fn maps(found: &Newcomer, block: BlockId) -> bool {
    let maps = || found.look(process::maps).flatten().unwrap_or_default();
    !found.is_apart() && maps().lines().any(|line| is_of(line, block))
}

/// Returns true if the process is shown to be a member of the class in this block, marked by `mark`
/// in its programs' environment ([`mark`]).
#[must_use]
pub fn shows_membership(found: &Newcomer, block: BlockId, mark: &[u8]) -> bool {
    maps(found, block) || found.carries(mark)
}

/// `DISCNICE=block:nonce`, as programs of a class have it in their environment.
#[must_use]
pub fn mark(class: &Class, block: BlockId) -> Vec<u8> {
    let mut mark = VARIABLE.to_vec();
    let token = Token { block, nonce: class.nonce(), member: None, directory: None };
    token.write(|part| mark.extend_from_slice(part));
    mark
}

/// Returns true if a line of `/proc/PID/maps` is of this block: of a segment, with its number as
/// the inode, or of a file.
fn is_of(line: &str, block: BlockId) -> bool {
    let mut words = line.split_ascii_whitespace().skip(4);
    let (inode, path) = (words.next(), words.next().unwrap_or_default());
    match block.store() {
        Some(Store::Segment(segment)) => {
            inode.and_then(|inode| inode.parse().ok()) == Some(i64::from(segment))
                && path.starts_with("/SYSV")
        }
        Some(Store::File(_)) => path.ends_with(&block.file_name().to_string()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use std::process::Command;

    #[test]
    fn a_segment_is_known_by_its_number_and_kind() {
        let line = "7f1c4a000000-7f1c4a2f0000 rw-s 00000000 00:01 32769    /SYSV0052a1c3 (deleted)";
        let is_segment = |line, number| is_of(line, BlockId::of_segment(number));
        assert!(is_segment(line, 32769) && !is_segment(line, 32768));
        let file = "7f1c4a000000-7f1c4a2f0000 r--p 00000000 fe:01 32769    /usr/lib/libdiscnice.so";
        assert!(
            !is_segment(file, 32769) && !is_segment("7f1c4a000000-7f1c4a2f0000 rw-p 0 00:00 0", 0)
        );
        let block = BlockId::of_file(7);
        let line =
            format!("7f1c4a000000-7f1c4a2f0000 rw-s 0 00:2a 9 /run/discnice/{}", block.file_name());
        assert!(is_of(&line, block) && !is_of(&line, BlockId::of_file(8)));
    }

    #[test]
    fn any_program_of_the_user_is_met_by_its_own_number() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(Stranger::meet(child.id()), None, "it has the number that it knows");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn numbers_inside_are_known() {
        let mut outer = Command::new("unshare").args(["-Urpf", "sleep", "100"]).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let child = loop {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if outer.try_wait().unwrap().is_some() {
                skip!("ordinary users get no namespaces for users and processes");
            }
            let found = fs::read_to_string(&children).unwrap_or_default();
            if let Ok(child) = found.trim().parse() {
                break child;
            }
        };
        let stranger = Stranger::meet(child).unwrap();
        assert_eq!((stranger.id, stranger.number, stranger.parent), (child, 1, outer.id()));
        assert!(stranger.lives());
        let first = rustix::process::Pid::from_raw(child.cast_signed()).unwrap();
        rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        let _ = outer.kill();
        outer.wait().unwrap();
    }
}
