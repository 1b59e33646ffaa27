//! The process that writes back: what it is told, what it looks at, and when.

use std::fs::{self, File, Metadata};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use discnice_processes::fork;
use discnice_sys::{file, time};
use discnice_units::Moment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::closed_files::{self, Closed};
use super::fuse_daemons::FuseDaemons;
use super::in_flight::InFlight;
use super::messages::{self, DAEMONS, News, Order};
use super::portions::{Pace, Portions};
use super::recent::Recent;
use crate::process::{descriptors, local_files};
use crate::tuning;

/// The helper's whole life.
pub(super) fn serve(mut socket: File) {
    // The handlers that it was born with are its parent's.
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGPIPE]);
    let _ = rustix::thread::set_name(c"discnice-flush");
    let (mut closed, mut paced) = (Closed::default(), Portions::default());
    let (mut daemons, mut awaited) = (FuseDaemons::default(), InFlight::default());
    let mut recent = Recent::default();
    let mut message = [0; messages::LENGTH];
    loop {
        let due = [paced.due(), daemons.due(), awaited.due()].into_iter().flatten().min();
        let (told, timed_out) = wait(&socket, &closed, due);
        closed.follow(&mut |path, pace| {
            recent.note(path, pace);
            start_at(path, pace, &mut paced)
        });
        closed.made.tell(|news| socket.write_all(&news.encode()).is_ok());
        if told {
            if socket.read_exact(&mut message).is_err() {
                return;
            }
            match Order::decode(message) {
                Some(Order { id: DAEMONS, pace, .. }) => {
                    let ids = daemons.ids(time::now(), pace);
                    ids.iter().for_each(|id| _ = start_all(*id, pace, &mut closed, &mut paced));
                }
                Some(Order { id, pace, left }) => {
                    let mut files = start_all(id, pace, &mut closed, &mut paced);
                    if let Some(left) = left {
                        files.extend(recent.take(pace));
                        awaited.add(time::now(), id, files, left);
                    }
                }
                None => {}
            }
        } else if timed_out && due.is_none() {
            (closed, recent) = (Closed::default(), Recent::default());
        }
        daemons.go_on(time::now(), |id, pace| expect_all(id, pace, &mut closed, &mut paced));
        paced.go_on(time::now());
        awaited.go_on(time::now(), |id| socket.write_all(&News::Written(id).encode()).is_ok());
    }
}

/// Waits until a process is reported to us, or a file was closed, or is `due`; returns whether the
/// first, and whether neither of the first two came for long.
fn wait(socket: &File, closed: &Closed, due: Option<Moment>) -> (bool, bool) {
    let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
    fds.extend(closed.events().map(|events| PollFd::from_borrowed_fd(events, PollFlags::IN)));
    let until = due.map(|due| Duration::from_nanos(due.since(time::now()).0));
    let longest = until.or(closed.events().map(|_| tuning::writeback::FOLDERS_QUIET));
    let timeout = longest.and_then(|longest| Timespec::try_from(longest).ok());
    let ready = poll(&mut fds, timeout.as_ref());
    (fds.first().is_some_and(|fd| !fd.revents().is_empty()), ready == Ok(0))
}

/// Starts to write the dirty pages of all files that the process has open for writing, or the first of them; returns the
/// links to the files.
fn start_all(id: u32, pace: Pace, closed: &mut Closed, paced: &mut Portions) -> Vec<PathBuf> {
    let mut links = Vec::new();
    for (path, found) in written_by(id) {
        links.push(path.clone());
        let name = reachable(id, &path, &found);
        let paths = std::iter::once(path).chain(name.clone()).collect();
        start_paced(&found, paths, pace, paced);
        if let Some(name) = name {
            closed.expect_beside(&name, pace, &mut |path, pace| start_at(path, pace, paced));
        }
    }
    expect_in_work(id, pace, closed, &mut |path, pace| start_at(path, pace, paced));
    links
}

/// Those beside files that the process has open for writing are expected to be closed.
fn expect_all(id: u32, pace: Pace, closed: &mut Closed, paced: &mut Portions) {
    for name in written_by(id).filter_map(|(path, found)| reachable(id, &path, &found)) {
        closed.expect_beside(&name, pace, &mut |path, pace| start_at(path, pace, paced));
    }
}

/// The files that a process has open for writing.
fn written_by(id: u32) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let written = |path: PathBuf| {
        let found = descriptors::can_write(&path)?.then(|| local_files::status(&path))??;
        is_kept(&found).then_some((path, found))
    };
    descriptors::of(id, tuning::writeback::DESCRIPTORS).filter_map(written)
}

/// Whether what is dirty of it belongs on the disk: without a name it need never get there.
fn is_kept(found: &Metadata) -> bool {
    found.is_file() && found.nlink() > 0
}

/// Watches the working directory, if it is the process's owner's: a process that writes into many
/// folders begins there.
fn expect_in_work(
    id: u32,
    pace: Pace,
    closed: &mut Closed,
    write_back: closed_files::WriteBack<'_>,
) {
    let link = PathBuf::from(format!("/proc/{id}/cwd"));
    let Some(found) = local_files::status(&link) else { return };
    let is_own =
        fs::metadata(format!("/proc/{id}")).is_ok_and(|process| process.uid() == found.uid());
    if let Some(folder) = reachable(id, &link, &found).filter(|_| is_own) {
        closed.expect_in(&folder, pace, write_back);
    }
}

/// A name by which we reach what this link in `/proc` leads to, also from outside a container.
fn reachable(id: u32, link: &Path, found: &Metadata) -> Option<PathBuf> {
    let name = fs::read_link(link).ok()?;
    let inside = PathBuf::from(format!("/proc/{id}/root")).join(name.strip_prefix("/").ok()?);
    let same = |path: &PathBuf| {
        local_files::status_at(path)
            .is_some_and(|other| (other.dev(), other.ino()) == (found.dev(), found.ino()))
    };
    [name, inside].into_iter().find(same)
}

/// As [`start_paced`], if a file is there; what it is.
fn start_at(path: &Path, pace: Pace, paced: &mut Portions) -> Option<Metadata> {
    let found = local_files::status_at(path).filter(Metadata::is_file)?;
    start_paced(&found, vec![path.into()], pace, paced);
    Some(found)
}

/// Starts to write the dirty pages of the file that these paths lead to; of many the first, and the others in their turn.
fn start_paced(found: &Metadata, paths: Vec<PathBuf>, pace: Pace, paced: &mut Portions) {
    if let Err(paths) = paced.take(time::now(), pace, found, paths)
        && let Some(path) = paths.first()
    {
        start(path);
    }
}

/// Starts to write the dirty pages of a file.
fn start(path: &Path) {
    if let Some(opened) = local_files::open_anew(path) {
        let fd = opened.as_raw_fd();
        // Not what a long call dirties meanwhile: it would be followed to its end. A range on overlayfs would be dropped
        // from the cache.
        let end = if file::is_on_overlay(fd) {
            Ok(0)
        } else {
            opened.metadata().map(|found| found.len())
        };
        let _ = file::start_write_back(fd, 0, end.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use super::*;
    use discnice_requirements::skip;
    use discnice_sys::pagecache;

    #[test]
    fn files_open_for_writing_that_have_names_are_written() {
        let mut named = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        named.write_all(&[1; 1 << 20]).unwrap();
        let count = |file: &File| pagecache::cachestat(file.as_raw_fd(), 0, 0).map(|c| c.dirty);
        let Ok(before) = count(named.as_file()) else { skip!("no cachestat(2)") };
        let pace = Pace { class: 0, portion: 1 << 20, period: Nanos::SECOND };
        start_all(std::process::id(), pace, &mut Closed::default(), &mut Portions::default());
        let after = count(named.as_file()).unwrap();
        assert!(before == 0 || after < before, "{before} dirty pages stay");
        assert!(is_kept(&named.as_file().metadata().unwrap()));
        let mut beside = Closed::default();
        expect_all(std::process::id(), pace, &mut beside, &mut Portions::default());
        assert!(beside.events().is_some(), "others are likely to be closed beside it");
        let nameless = tempfile::tempfile_in("/var/tmp").unwrap();
        assert!(!is_kept(&nameless.metadata().unwrap()), "its owner deletes it soon");
    }
}
