//! The files of the configuration: whether they have changed, without waiting for a file system that hangs.
//!
//! Files of this machine's own are looked at here. Where one lies on a file system that a server or a daemon serves, as in a home
//! by NFS, a helper process looks, and tells when there is something new: only then they are read here.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use discnice_processes::fork;
use rustix::event::{PollFd, PollFlags, poll};

use super::{Loaded, Rule, Rulebook};
use crate::helper_process;
use crate::process::local_files;

/// What tells that a file has changed: device, inode, size, time of its last change.
type Stamp = Option<(u64, u64, u64, i64, i64)>;
/// As many symbolic links does the kernel follow. path_resolution(7)
const MOST_LINKS: u32 = 40;
/// Bytes of an answer of the helper: how often it has found something new.
const ANSWER: usize = size_of::<u64>();

/// The files, also those that do not exist.
#[derive(Debug)]
pub(super) struct Files {
    book: Rulebook,
    known: Vec<(PathBuf, Stamp)>,
    elsewhere: Option<Helper>,
}

impl Files {
    pub(super) fn new(book: Rulebook) -> Self {
        Self { book, known: Vec::new(), elsewhere: None }
    }

    /// Reads the rules if a file has changed; `None` if none has, or they are wrong, or that is not known yet.
    pub(super) fn follow(&mut self) -> Option<Vec<Rule>> {
        if self.are_local() {
            self.elsewhere = None;
            return self.read_changed()?.ok();
        }
        let book = self.book;
        let helper = self.elsewhere.get_or_insert_with(|| Helper::start(book));
        if helper.tells_of_change() { self.read().ok() } else { None }
    }

    /// Whether the helper has been asked and has not answered yet.
    pub(super) fn are_awaited(&self) -> bool {
        self.elsewhere.as_ref().is_some_and(|helper| helper.asked)
    }

    /// Whether no server or daemon is needed to look at them.
    fn are_local(&self) -> bool {
        let place = (self.book.place)();
        let known = self.known.iter().map(|(path, _)| path.as_path());
        place.as_deref().into_iter().chain(known).all(leads_to_local)
    }

    /// What the files say, if one of them has changed.
    fn read_changed(&mut self) -> Option<Result<Vec<Rule>, String>> {
        let has_changed = |(path, known): &(PathBuf, Stamp)| stamp(path) != *known;
        let changed = self.known.is_empty() || self.known.iter().any(has_changed);
        changed.then(|| self.read())
    }

    fn read(&mut self) -> Result<Vec<Rule>, String> {
        let Loaded { rules, files } = (self.book.load)();
        self.known = files.into_iter().map(|path| (path.clone(), stamp(&path))).collect();
        rules
    }
}

/// Whether a name leads to a file of this machine's own, through its symbolic links.
fn leads_to_local(path: &Path) -> bool {
    let (mut place, mut links) = (PathBuf::from("/"), 0);
    let parts = |path: &Path| path.iter().rev().map(OsString::from).collect::<Vec<_>>();
    let mut left = parts(path);
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => _ = place.pop(),
            _ => place.push(&part),
        }
        if !local_files::is_local(&place) || links > MOST_LINKS {
            return false;
        }
        if let Ok(target) = fs::read_link(&place) {
            links += 1;
            place.pop();
            left.extend(parts(&target));
        }
    }
    true
}

fn stamp(path: &Path) -> Stamp {
    let facts = fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino(), facts.size(), facts.ctime(), facts.ctime_nsec()))
}

/// The process that looks at files which may hang. It ends with this one, or when they go on.
#[derive(Debug)]
struct Helper {
    /// `None` where there is none to be had: then the rules stay as they are.
    socket: Option<File>,
    asked: bool,
    /// Its last answer.
    changes: u64,
}

impl Helper {
    fn start(book: Rulebook) -> Self {
        let socket = helper_process::start(move |socket| serve(socket, book)).ok();
        Self { socket, asked: false, changes: 0 }
    }

    /// Whether it has found something new since the last answer; asks it again.
    fn tells_of_change(&mut self) -> bool {
        let Some(socket) = &mut self.socket else { return false };
        let mut answer = [0; ANSWER];
        let before = self.changes;
        if self.asked && socket.read_exact(&mut answer).is_ok() {
            self.asked = false;
            self.changes = u64::from_ne_bytes(answer);
        }
        if !self.asked {
            self.asked = socket.write_all(&[0]).is_ok();
        }
        self.changes != before
    }
}

/// The helper's whole life.
fn serve(mut socket: File, book: Rulebook) {
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGPIPE]);
    let _ = rustix::thread::set_name(c"discnice-rules");
    let (mut files, mut changes) = (Files::new(book), 0u64);
    loop {
        let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], None);
        match socket.read(&mut [0]) {
            Ok(1) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            _ => return,
        }
        changes += u64::from(files.read_changed().is_some());
        if socket.write_all(&changes.to_ne_bytes()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_is_followed_through_its_links() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("/proc/version", at("far")).unwrap();
        symlink("a/../b", at("near")).unwrap();
        symlink("far", at("b")).unwrap();
        symlink("round", at("round")).unwrap();
        for local in ["nothing", "nothing/below", "a"] {
            assert!(leads_to_local(&at(local)), "{local}");
        }
        for served in ["far", "near", "b", "round"] {
            assert!(!leads_to_local(&at(served)), "{served}");
        }
    }
}
