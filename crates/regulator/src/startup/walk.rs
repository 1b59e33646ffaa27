//! From a program's path to all files that starting it reads.

use core::ffi::{CStr, c_char};

use discnice_sys::file;
use discnice_sys::opened::Opened;

use crate::startup::elf::{Dynamic, Elf, string};
use crate::startup::text::Text;
use crate::startup::{cache, script, window};
use crate::{Host, Regulator, Thread};

/// An interpreter may itself be a script, so often (`exec_binprm` in the kernel's fs/exec.c).
pub(crate) const SCRIPTS: usize = 5;
/// How deep libraries that need libraries are followed. Each level holds a descriptor; what lies
/// deeper is mostly needed by others too.
const DEPTH: usize = 8;
/// Names of libraries that are followed.
const NAMES: usize = 128;

/// The dynamic linker's list of libraries.
const CACHE: &CStr = c"/etc/ld.so.cache";

/// What execvp(3) searches when `PATH` is not set.
pub(crate) const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Brings in what starting the program at `path` reads; `path` is relative to the directory `at`
/// (`AT_FDCWD` for the current one), and may be anything that the kernel will refuse.
pub fn program<H: Host>(
    regulator: &Regulator<'_, H>,
    thread: &Thread,
    at: i32,
    path: *const c_char,
) {
    if regulator.faults_burst() {
        Walk::new(&mut Paced::new(regulator, thread)).program(at, path);
    }
}

/// Brings in what starting a program reads that execvp(3) will look for in the directories of
/// `path`, the variable `PATH`, if its name has no slash.
pub fn command<H: Host>(
    regulator: &Regulator<'_, H>,
    thread: &Thread,
    name: &CStr,
    path: Option<&[u8]>,
) {
    if regulator.faults_burst() {
        Walk::new(&mut Paced::new(regulator, thread)).command(name, path.unwrap_or(DEFAULT_PATH));
    }
}

/// Brings in what dlopen(3) of this name reads: a path if there is a slash in it.
pub fn library<H: Host>(regulator: &Regulator<'_, H>, thread: &Thread, name: &CStr) {
    if regulator.faults_burst() {
        Walk::new(&mut Paced::new(regulator, thread)).library(name);
    }
}

/// What is done with each file that is found.
pub(crate) trait Sink {
    /// The file will be loaded, up to `end`.
    fn take(&mut self, file: &Opened, end: u64);
}

/// Reads the files, paced.
struct Paced<'a, 'b, H> {
    regulator: &'a Regulator<'b, H>,
    thread: &'a Thread,
    missed: bool,
    window: window::Known,
}

impl<'a, 'b, H> Paced<'a, 'b, H> {
    fn new(regulator: &'a Regulator<'b, H>, thread: &'a Thread) -> Self {
        Self { regulator, thread, missed: false, window: window::Known::default() }
    }
}

impl<H: Host> Sink for Paced<'_, '_, H> {
    fn take(&mut self, file: &Opened, end: u64) {
        let Ok(status) = file::status(file.fd()) else { return };
        let end = end.min(status.size).min(self.window.reach(status.device));
        self.missed = self.regulator.bring_in(self.thread, file.fd(), 0..end, self.missed);
    }
}

/// A file with libraries that are being looked for.
struct Level {
    file: Opened,
    dynamic: Dynamic,
    /// The entry of the dynamic section to go on with.
    next: u32,
}

/// One search.
pub(crate) struct Walk<'a, S> {
    sink: &'a mut S,
    /// Names that were met, as hashes; a collision leaves a library to the page faults.
    seen: [u64; NAMES],
    met: usize,
    name: Text,
    path: Text,
    list: Text,
}

impl<'a, S: Sink> Walk<'a, S> {
    pub(crate) fn new(sink: &'a mut S) -> Self {
        let (name, path, list) = (Text::new(), Text::new(), Text::new());
        Self { sink, seen: [0; NAMES], met: 0, name, path, list }
    }

    pub(crate) fn program(&mut self, at: i32, path: *const c_char) {
        let mut next = open_program(at, path);
        for _ in 0..SCRIPTS {
            let Some(file) = next else { return };
            if let Some(elf) = Elf::read(&file) {
                self.sink.take(&file, elf.end);
                if elf.interpreter(&file, &mut self.path) {
                    self.interpreter();
                }
                return self.needs(file, &elf);
            }
            if !script::interpreter(&file, &mut self.path) {
                return;
            }
            next = self.path.path().and_then(|path| open_program(libc::AT_FDCWD, path));
        }
    }

    pub(crate) fn command(&mut self, name: &CStr, search: &[u8]) {
        if name.to_bytes().contains(&b'/') {
            return self.program(libc::AT_FDCWD, name.as_ptr());
        }
        if look_for(name, search, &mut self.path).is_some() {
            self.program_at_path();
        }
    }

    fn program_at_path(&mut self) {
        let mut path = Text::new();
        if path.push(self.path.bytes())
            && let Some(path) = path.path()
        {
            self.program(libc::AT_FDCWD, path);
        }
    }

    pub(crate) fn library(&mut self, name: &CStr) {
        if !self.name.set(name) {
            return;
        }
        if let Some(file) = self.find(None) {
            self.image(file);
        }
    }

    /// Walks the dynamic linker at the path that has been read. Libraries need it by its name
    /// again.
    fn interpreter(&mut self) {
        let name = self.path.bytes().rsplit(|byte| *byte == b'/').next().map(hash);
        self.is_new(name.unwrap_or_default());
        let file = self.path.path().and_then(|path| open(libc::AT_FDCWD, path));
        if let Some(file) = file
            && let Some(elf) = Elf::read(&file)
        {
            self.sink.take(&file, elf.end);
        }
    }

    /// A library with all that it needs.
    fn image(&mut self, file: Opened) {
        if let Some(elf) = Elf::read(&file) {
            self.sink.take(&file, elf.end);
            self.needs(file, &elf);
        }
    }

    /// All that this file needs, and what that needs, the first one's before the second.
    fn needs(&mut self, file: Opened, elf: &Elf) {
        let mut levels = [const { None }; DEPTH];
        let mut depth = 0;
        put(&mut levels, depth, level(file, elf));
        while let Some(Some(level)) = levels.get_mut(depth) {
            let Some(next) = level.dynamic.needed(&level.file, level.next, &mut self.name) else {
                put(&mut levels, depth, None);
                let Some(above) = depth.checked_sub(1) else { return };
                depth = above;
                continue;
            };
            level.next = next;
            if let Some(found) = self.find_new(level)
                && let Some(elf) = Elf::read(&found)
            {
                self.sink.take(&found, elf.end);
                let below = self::level(found, &elf);
                if below.is_some() && depth + 1 < DEPTH {
                    depth += 1;
                    put(&mut levels, depth, below);
                }
            }
        }
    }

    /// Finds the library with the name that has been read, unless it was met before.
    fn find_new(&mut self, level: &Level) -> Option<Opened> {
        let name = hash(self.name.bytes());
        if self.is_new(name) { self.find(Some(level)) } else { None }
    }

    /// Notes a name's hash; returns whether it is new, and not one too many.
    fn is_new(&mut self, name: u64) -> bool {
        if self.seen.iter().take(self.met).any(|seen| *seen == name) {
            return false;
        }
        let Some(free) = self.seen.get_mut(self.met) else { return false };
        *free = name;
        self.met += 1;
        true
    }

    /// Finds the library with the name that has been read, where ld.so(8) would.
    fn find(&mut self, needing: Option<&Level>) -> Option<Opened> {
        if self.name.bytes().contains(&b'/') {
            return open(libc::AT_FDCWD, self.name.path()?);
        }
        needing.and_then(|level| self.find_by_run_path(level)).or_else(|| self.find_in_cache())
    }

    fn find_in_cache(&mut self) -> Option<Opened> {
        let list = Opened::open(libc::AT_FDCWD, CACHE.as_ptr()).ok()?;
        if !cache::find(&list, self.name.bytes(), &mut self.path) {
            return None;
        }
        open(libc::AT_FDCWD, self.path.path()?)
    }

    /// In the directories that the needing file names; `$ORIGIN` is its own.
    fn find_by_run_path(&mut self, level: &Level) -> Option<Opened> {
        let at = level.dynamic.run_path?;
        if !string(&level.file, at, &mut self.list) {
            return None;
        }
        for folder in self.list.bytes().split(|byte| *byte == b':') {
            let fits = fill_folder(&mut self.path, folder, &level.file)
                && self.path.push(b"/")
                && self.path.push(self.name.bytes());
            let path = self.path.path().filter(|_| fits);
            if let Some(file) = path.and_then(|path| open(libc::AT_FDCWD, path)) {
                return Some(file);
            }
        }
        None
    }
}

/// Puts a directory of a search path into `path`; returns whether that is possible.
fn fill_folder(path: &mut Text, folder: &[u8], origin: &Opened) -> bool {
    path.clear();
    let names = [&b"$ORIGIN"[..], b"${ORIGIN}"];
    let Some(rest) = names.iter().find_map(|name| folder.strip_prefix(*name)) else {
        return !folder.is_empty() && !folder.contains(&b'$') && path.push(folder);
    };
    path.fill(|buffer| origin.path(buffer));
    path.cut_to_folder() && !rest.contains(&b'$') && path.push(rest)
}

fn level(file: Opened, elf: &Elf) -> Option<Level> {
    let dynamic = elf.dynamic(&file)?;
    Some(Level { file, dynamic, next: 0 })
}

fn put(levels: &mut [Option<Level>; DEPTH], depth: usize, level: Option<Level>) {
    if let Some(place) = levels.get_mut(depth) {
        *place = level;
    }
}

/// Opens a regular file; looking at it reads no more than the pages looked at.
fn open(at: i32, path: *const c_char) -> Option<Opened> {
    let file = Opened::open(at, path).ok()?;
    if !file::status(file.fd()).ok()?.regular {
        return None;
    }
    file::advise(file.fd(), libc::POSIX_FADV_RANDOM).ok()?;
    Some(file)
}

/// Opens the program of this name, without a slash, that execvp(3) finds in these directories, and leaves its path in
/// `path`.
pub(crate) fn look_for(name: &CStr, search: &[u8], path: &mut Text) -> Option<Opened> {
    search.split(|byte| *byte == b':').find_map(|folder| {
        // An empty entry is the current directory.
        let folder = if folder.is_empty() { b"." } else { folder };
        path.clear();
        let fits = path.push(folder) && path.push(b"/") && path.push(name.to_bytes());
        path.path().filter(|_| fits).and_then(|path| open_program(libc::AT_FDCWD, path))
    })
}

/// Opens a file that any user may execute.
pub(crate) fn open_program(at: i32, path: *const c_char) -> Option<Opened> {
    let file = open(at, path)?;
    file::status(file.fd()).is_ok_and(|status| status.executable).then_some(file)
}

/// FNV-1a.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
