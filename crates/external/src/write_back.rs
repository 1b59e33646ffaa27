//! Steady write-back of what the held dirty.
//!
//! Left alone the kernel collects dirty pages for seconds and then writes them at full speed, however
//! slowly they were dirtied. So the files that a process has open for writing are written back in
//! portions, as our library does from inside. sync_file_range(2) changes nothing that anybody could
//! see; but it waits while the disk's queue is full, so a process of its own does it: who holds others
//! must never wait. Small files are closed before that one looks; [`crate::closed`] finds them.

use std::cell::RefCell;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use discnice_benice::fork;
use discnice_sys::file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::closed::Closed;
use crate::descriptors;

/// Descriptors of a process that are looked at; what more of them dirty the kernel writes, later.
const DESCRIPTORS: usize = 1024;
/// When nobody has dirtied a portion for so long, no folder is watched any more.
const QUIET: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// The process that writes back, which all watched classes share; started when it is first needed. It
/// ends with us.
#[derive(Debug, Clone, Default)]
pub struct WriteBack(Rc<RefCell<Option<File>>>);

impl WriteBack {
    /// Has the dirty pages of all files that process `id` has open for writing written, soon. Where
    /// that is not possible the kernel's own write-back does it, later.
    pub fn of(&self, id: u32) {
        let mut pipe = self.0.borrow_mut();
        if pipe.is_none() {
            *pipe = begin().ok();
        }
        let told = pipe.as_mut().map(|pipe| pipe.write_all(&id.to_ne_bytes()));
        // A full pipe means that the disk is behind: to start more would not help.
        if told.is_some_and(|told| told.is_err_and(|why| why.kind() != io::ErrorKind::WouldBlock)) {
            *pipe = None;
        }
    }
}

fn begin() -> io::Result<File> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK)?;
    fork::detached(reader, serve)?;
    Ok(writer.into())
}

/// The helper's whole life.
fn serve(mut pipe: File) {
    // The handlers that it was born with are its parent's.
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGPIPE]);
    let _ = rustix::thread::set_name(c"discnice-flush");
    let (mut closed, mut id) = (Closed::default(), [0; size_of::<u32>()]);
    loop {
        let (told, timed_out) = wait(&pipe, &closed);
        closed.follow(start_at);
        if told {
            if pipe.read_exact(&mut id).is_err() {
                return;
            }
            start_all(u32::from_ne_bytes(id), &mut closed);
        } else if timed_out {
            closed = Closed::default();
        }
    }
}

/// Waits until we are told of somebody, or something was closed; whether the first, and whether neither
/// came for long.
fn wait(pipe: &File, closed: &Closed) -> (bool, bool) {
    let mut fds = vec![PollFd::new(pipe, PollFlags::IN)];
    fds.extend(closed.events().map(|events| PollFd::from_borrowed_fd(events, PollFlags::IN)));
    let timeout = closed.events().map(|_| &QUIET);
    let ready = poll(&mut fds, timeout);
    (fds.first().is_some_and(|fd| !fd.revents().is_empty()), ready == Ok(0))
}

/// Starts to write the dirty pages of all files that the process has open for writing.
fn start_all(id: u32, closed: &mut Closed) {
    for path in descriptors::of(id, DESCRIPTORS) {
        let writable = descriptors::can_write(&path) == Some(true);
        if let Some(found) = fs::metadata(&path).ok().filter(|found| writable && is_kept(found)) {
            start(&path);
            if let Some(name) = reachable(id, &path, &found) {
                closed.expect_beside(&name, start_at);
            }
        }
    }
    expect_in_work(id, closed);
}

/// Whether what is dirty of it belongs on the disk: without a name it need never get there.
fn is_kept(found: &Metadata) -> bool {
    found.is_file() && found.nlink() > 0
}

/// Who writes into many folders begins with the one that he works in, if it is his.
fn expect_in_work(id: u32, closed: &mut Closed) {
    let link = PathBuf::from(format!("/proc/{id}/cwd"));
    let Ok(found) = fs::metadata(&link) else { return };
    let his = fs::metadata(format!("/proc/{id}")).is_ok_and(|process| process.uid() == found.uid());
    if let Some(folder) = reachable(id, &link, &found).filter(|_| his) {
        closed.expect_in(&folder);
    }
}

/// A name by which we reach what this link in `/proc` leads to, also from outside a container.
fn reachable(id: u32, link: &Path, found: &Metadata) -> Option<PathBuf> {
    let name = fs::read_link(link).ok()?;
    let inside = PathBuf::from(format!("/proc/{id}/root")).join(name.strip_prefix("/").ok()?);
    let same = |path: &PathBuf| {
        fs::symlink_metadata(path)
            .is_ok_and(|other| (other.dev(), other.ino()) == (found.dev(), found.ino()))
    };
    [name, inside].into_iter().find(same)
}

/// As [`start`], if a file is there.
fn start_at(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        start(path);
    }
}

/// Starts to write the dirty pages of a file.
fn start(path: &Path) {
    if let Some(opened) = descriptors::open_anew(path) {
        let _ = file::start_write_back(opened.as_raw_fd(), 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::pagecache;

    #[test]
    fn files_open_for_writing_that_have_names_are_written() {
        let mut named = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        named.write_all(&[1; 1 << 20]).unwrap();
        let count = |file: &File| pagecache::cachestat(file.as_raw_fd(), 0, 0).map(|c| c.dirty);
        let Ok(before) = count(named.as_file()) else { return };
        start_all(std::process::id(), &mut Closed::default());
        let after = count(named.as_file()).unwrap();
        assert!(before == 0 || after < before, "{before} dirty pages stay");
        assert!(is_kept(&named.as_file().metadata().unwrap()));
        let nameless = tempfile::tempfile_in("/var/tmp").unwrap();
        assert!(!is_kept(&nameless.metadata().unwrap()), "its owner deletes it soon");
    }
}
