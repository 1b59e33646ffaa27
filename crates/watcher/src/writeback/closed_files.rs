//! Writes back files that were closed before their descriptors could be looked at. Exists for `eval/benches/escapes.py`, row `child: busybox untar`,
//! where the highest 5 s had 4.74 times the limit without it.
//!
//! A program that unpacks an archive has each file open for some microseconds. So the folders in
//! which a process was seen writing are watched (inotify(7)) for files that are closed there, and
//! they and those above them for new folders, in which it goes on; those that it has just made are
//! looked for. What is watched pins nothing: it can be removed and unmounted.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::accounting::created_files::Made;
use crate::process::local_files;
use crate::tuning;
use crate::writeback::portions::Pace;

/// What is done in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// New folders are watched.
    Folders,
    /// Closed files are written back, too.
    Files,
}

impl Wanted {
    fn flags(self) -> WatchFlags {
        let folders = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let safe = WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW | WatchFlags::EXCL_UNLINK;
        match self {
            Self::Folders => folders | safe,
            Self::Files => folders | safe | WatchFlags::CLOSE_WRITE,
        }
    }
}

/// What is known of a folder.
#[derive(Debug, Clone, Copy)]
struct Folder {
    wanted: Wanted,
    /// Pace of the process that was seen writing there last, or above it.
    pace: Pace,
    /// Its file system's number.
    device: u64,
}

/// Has a file written back at this pace; what it is, if it is there.
pub(crate) type WriteBack<'a> = &'a mut dyn FnMut(&Path, Pace) -> Option<Metadata>;

/// What happened in a watched folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    NewFolder,
    /// A file that was made there is closed for the first time.
    Made,
    /// Another is closed, or was moved there.
    Changed,
}

/// Files that were made and have not been closed since.
#[derive(Debug, Default)]
struct Open(HashSet<PathBuf>);

impl Open {
    /// What happened to what is at this path; `None` if a file was made.
    fn follow(&mut self, events: ReadFlags, path: &Path) -> Option<Event> {
        if events.contains(ReadFlags::ISDIR) {
            return Some(Event::NewFolder);
        }
        if events.contains(ReadFlags::CREATE) {
            if self.0.len() >= tuning::writeback::OPEN_FILES {
                // What only got another name (link(2)) is never closed.
                self.0.clear();
            }
            self.0.insert(path.to_path_buf());
            return None;
        }
        Some(if self.0.remove(path) { Event::Made } else { Event::Changed })
    }
}

/// The watched folders.
#[derive(Debug, Default)]
pub struct Closed {
    inotify: Option<OwnedFd>,
    folders: HashMap<i32, PathBuf>,
    known: HashMap<PathBuf, Folder>,
    /// Files that were made in them.
    pub(crate) made: Made,
    open: Open,
}

impl Closed {
    /// Notes that a process has the file at `path` open for writing and is likely to close others
    /// beside it, or has just done so.
    pub(crate) fn expect_beside(&mut self, path: &Path, pace: Pace, write_back: WriteBack<'_>) {
        let Some(folder) = path.parent() else { return };
        if let Some(known) = self.known.get_mut(folder)
            && known.wanted == Wanted::Files
        {
            known.pace = pace;
            return;
        }
        if !self.watch(folder, Wanted::Files, pace) {
            return;
        }
        for (other, found) in entries(folder) {
            if found.is_file() && found.created().is_ok_and(is_lately) {
                self.made.note_found(pace.class, &found);
            }
            if other == path {
                continue;
            }
            if found.is_file() && is_lately(changed(&found)) {
                let _ = write_back(&other, pace);
            } else if is_new_folder(&found) {
                self.enter(other, pace, write_back);
            }
        }
        self.expect_above(folder, pace, write_back);
    }

    /// Notes that a writing process may make folders in this one, which is its owner's, or has just
    /// done so.
    pub(crate) fn expect_in(&mut self, folder: &Path, pace: Pace, write_back: WriteBack<'_>) {
        if self.known.contains_key(folder) || !self.watch(folder, Wanted::Folders, pace) {
            return;
        }
        for (path, _) in entries(folder).filter(|(_, found)| is_new_folder(found)) {
            self.enter(path, pace, write_back);
        }
    }

    fn expect_above(&mut self, folder: &Path, pace: Pace, write_back: WriteBack<'_>) {
        let Some(own) = local_files::status_at(folder) else { return };
        for above in folder.ancestors().skip(1).take(tuning::writeback::FOLDERS_ABOVE) {
            let is_alike = local_files::status_at(above)
                .is_some_and(|found| (found.uid(), found.dev()) == (own.uid(), own.dev()));
            if !is_alike {
                return;
            }
            self.expect_in(above, pace, write_back);
        }
    }

    /// What to wait for; `None` while nothing is watched.
    pub fn events(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Has what was closed since the last call written back, and looks into new folders.
    pub(crate) fn follow(&mut self, write_back: WriteBack<'_>) {
        for (path, event, pace) in self.take_events() {
            if event == Event::NewFolder {
                self.enter(path, pace, write_back);
            } else if let Some(found) = write_back(&path, pace)
                && event == Event::Made
            {
                self.made.note_closed(pace.class, &found);
            }
        }
    }

    /// Which files were closed or moved, and which folders are new.
    fn take_events(&mut self) -> Vec<(PathBuf, Event, Pace)> {
        let Self { inotify: Some(inotify), folders, known, made, open } = self else {
            return Vec::new();
        };
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(inotify.as_fd(), &mut buffer);
        let mut found = Vec::new();
        while let Ok(event) = reader.next() {
            let Some(folder) = folders.get(&event.wd()) else { continue };
            if event.events().contains(ReadFlags::IGNORED) {
                known.remove(folder);
                folders.remove(&event.wd());
                continue;
            }
            let (Some(name), Some(known)) = (event.file_name(), known.get(folder)) else {
                continue;
            };
            let is_folder = event.events().contains(ReadFlags::ISDIR);
            if !is_folder && known.wanted != Wanted::Files {
                continue;
            }
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            match open.follow(event.events(), &path) {
                Some(happened) => found.push((path, happened, known.pace)),
                None => made.note(known.pace.class, known.device),
            }
        }
        found
    }

    /// A folder that was just made, with all that was made in it since.
    fn enter(&mut self, folder: PathBuf, pace: Pace, write_back: WriteBack<'_>) {
        let mut todo = vec![folder];
        while let Some(folder) = todo.pop() {
            let known = self.known.get(&folder).is_some_and(|known| known.wanted == Wanted::Files);
            if known || !self.watch(&folder, Wanted::Files, pace) {
                continue;
            }
            for (path, found) in entries(&folder) {
                if found.is_dir() {
                    todo.push(path);
                } else if found.is_file() {
                    self.made.note_found(pace.class, &found);
                    let _ = write_back(&path, pace);
                }
            }
        }
    }

    /// Whether the folder is watched now.
    fn watch(&mut self, folder: &Path, wanted: Wanted, pace: Pace) -> bool {
        if self.folders.len() >= tuning::writeback::FOLDERS {
            return false;
        }
        let Some(found) = local_files::status_at(folder) else { return false };
        if self.inotify.is_none() {
            self.inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(inotify) = &self.inotify else { return false };
        let Ok(number) = inotify::add_watch(inotify, folder, wanted.flags()) else {
            return false;
        };
        self.folders.insert(number, folder.to_path_buf());
        self.known.insert(folder.to_path_buf(), Folder { wanted, pace, device: found.dev() });
        true
    }
}

/// When anything of it was changed; when it was modified programs set to what they like (`rsync --times`).
fn changed(found: &Metadata) -> SystemTime {
    let since = (found.ctime().try_into().unwrap_or(0), found.ctime_nsec().try_into().unwrap_or(0));
    SystemTime::UNIX_EPOCH + Duration::new(since.0, since.1)
}

/// Whether that was a moment ago, or after now, as far as a clock that was set back tells.
fn is_lately(when: SystemTime) -> bool {
    SystemTime::now()
        .duration_since(when)
        .map_or(true, |age| age < tuning::writeback::NEW_FOLDER_AGE)
}

/// A folder that was made a moment ago: not one that was only moved, with all that is in it.
fn is_new_folder(found: &Metadata) -> bool {
    found.is_dir() && found.created().is_ok_and(is_lately)
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries =
        fs::read_dir(folder).into_iter().flatten().flatten().take(tuning::writeback::ENTRIES);
    entries.filter_map(|entry| Some((entry.path(), local_files::status_at(&entry.path())?)))
}

#[cfg(test)]
mod tests;
