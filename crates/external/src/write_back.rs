//! Steady write-back of what the held dirty.
//!
//! Left alone the kernel collects dirty pages for seconds and then writes them at full speed, however
//! slowly they were dirtied. So the files that a process has open for writing are written back in
//! portions, as our library does from inside. sync_file_range(2) changes nothing that anybody could
//! see; but it waits while the disk's queue is full, so a process of its own does it: who holds others
//! must never wait.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::rc::Rc;

use discnice_benice::fork;
use discnice_sys::file;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

/// Descriptors of a process that are looked at; what more of them dirty the kernel writes, later.
const DESCRIPTORS: usize = 1024;
/// The owner's right to write, which a link in `/proc/PID/fd` has if the descriptor has it, proc(5).
const WRITABLE: u32 = 0o200;

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
            *pipe = start().ok();
        }
        let told = pipe.as_mut().map(|pipe| pipe.write_all(&id.to_ne_bytes()));
        // A full pipe means that the disk is behind: to start more would not help.
        if told.is_some_and(|told| told.is_err_and(|why| why.kind() != io::ErrorKind::WouldBlock)) {
            *pipe = None;
        }
    }
}

fn start() -> io::Result<File> {
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
    let mut id = [0; size_of::<u32>()];
    while pipe.read_exact(&mut id).is_ok() {
        start_all(u32::from_ne_bytes(id));
    }
}

/// Starts to write the dirty pages of all files that the process has open for writing.
fn start_all(id: u32) {
    let entries = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    for path in entries.take(DESCRIPTORS).map(|entry| entry.path()) {
        let writable = fs::symlink_metadata(&path).is_ok_and(|link| link.mode() & WRITABLE != 0);
        if writable && fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            // Opened anew and for reading only: a descriptor that can write would keep the program
            // in it from being executed (ETXTBSY) if the process closed its own meanwhile.
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            if let Ok(opened) = OpenOptions::new().read(true).custom_flags(flags).open(path) {
                let _ = file::start_write_back(opened.as_raw_fd(), 0, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::pagecache;

    #[test]
    fn files_open_for_writing_are_written() {
        let mut dirty = tempfile::tempfile_in("/var/tmp").unwrap();
        dirty.write_all(&[1; 1 << 20]).unwrap();
        let count = |file: &File| pagecache::cachestat(file.as_raw_fd(), 0, 0).map(|c| c.dirty);
        let Ok(before) = count(&dirty) else { return };
        start_all(std::process::id());
        assert!(before == 0 || count(&dirty).unwrap() < before, "{before} dirty pages stay");
    }
}
