//! Files held in memory: the programs under test and DiscNice itself. The papers' were in memory; on a
//! kernel that takes back what lies idle, a program's own file would be read from another disk while it
//! is measured, at its limit and in its account.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;
use memmap2::Mmap;

use crate::proc;

/// A file locked in memory until this is dropped.
pub struct Locked(#[expect(dead_code, reason = "it holds the pages")] Mmap);

impl Locked {
    /// Brings all of a file into memory, and keeps it there. Needs root.
    ///
    /// # Errors
    /// The file is empty or cannot be read, or there is too little memory.
    pub fn new(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        // SAFETY: no reference into the mapping is ever made, so changes of the file by others are
        // not seen.
        #[expect(unsafe_code, reason = "the one mapping of the evaluation")]
        let map = unsafe { Mmap::map(&file) };
        map.and_then(|map| map.lock().map(|()| Self(map)))
            .with_context(|| format!("cannot hold {} in memory", path.display()))
    }
}

/// What programs are made of, each file once.
pub struct Resident {
    files: BTreeMap<PathBuf, Option<Locked>>,
    /// The disk under test, which must be free to be unmounted.
    disk: PathBuf,
}

impl Resident {
    /// Nothing yet, and never a file on `disk`.
    #[must_use]
    pub fn new(disk: &Path) -> Self {
        Self { files: BTreeMap::new(), disk: disk.to_owned() }
    }

    /// Adds what the processes of a group have mapped now: their programs and libraries.
    ///
    /// What cannot be held is left out: the measurement goes on, and its spread shows it.
    pub fn add(&mut self, group: u32) {
        for (process, _) in proc::of_group(group) {
            let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
            for path in maps.lines().filter_map(mapped_file) {
                if !self.files.contains_key(path) && !path.starts_with(&self.disk) {
                    self.files.insert(path.to_owned(), Locked::new(path).ok());
                }
            }
        }
    }
}

/// The program or library of a line of proc_pid_maps(5); `None` if it is neither: data may be larger than memory.
fn mapped_file(line: &str) -> Option<&Path> {
    let mut fields = line.splitn(6, ' ');
    let executable = fields.nth(1)?.contains('x');
    let path = fields.nth(3)?.trim_start();
    (executable && path.starts_with('/') && !path.ends_with(" (deleted)")).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_are_found_in_maps() {
        let line = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 42         /usr/lib/a b.so";
        assert_eq!(mapped_file(line), Some(Path::new("/usr/lib/a b.so")));
        for other in [
            "7f0000000000-7f0000001000 r--p 00000000 fe:00 42         /usr/lib/locale/archive",
            "7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0          [vdso]",
            "7f0000000000-7f0000001000 r-xp 00000000 fe:00 42         /usr/lib/old.so (deleted)",
            "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(mapped_file(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_program_is_held_once() {
        let mut resident = Resident::new(Path::new("/no/such/disk"));
        let group = rustix::process::getpgrp().as_raw_pid().unsigned_abs();
        resident.add(group);
        let count = resident.files.len();
        let own = std::env::current_exe().expect("we run");
        assert!(resident.files.contains_key(&own), "{:?}", resident.files.keys());
        resident.add(group);
        assert_eq!(resident.files.len(), count);
        let mut none = Resident::new(Path::new("/"));
        none.add(group);
        assert!(none.files.is_empty(), "{:?}", none.files.keys());
    }
}
