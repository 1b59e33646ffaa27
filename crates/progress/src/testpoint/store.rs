//! Targets that outlive the job (paper sections 4.3 and 7.1).
//!
//! One file for each job, named after its executable. The first line is `discnice-targets 1 SUM`,
//! with the FNV-1a checksum of what follows in hexadecimal; then comes one JSON object with the job's
//! identity and its targets. A file is replaced atomically (write, sync, rename), so a reader or a
//! crash sees the old one or the new one. What cannot be read is set aside under another name with
//! a notice, and the job calibrates anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use discnice_paths::fnv1a;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::model::Targets;

const MAGIC: &str = "discnice-targets 1 ";
/// A thousand sets of sixteen metrics with their windows stay below this; longer is not ours.
const LONGEST: u64 = 1 << 28;

/// The place of one job's targets.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    identity: String,
}

#[derive(Serialize, Deserialize)]
struct Saved<T> {
    job: String,
    targets: T,
}

/// What [`Store::load`] found.
#[derive(Debug)]
pub enum Loaded {
    /// Targets from an earlier run.
    Targets(Box<Targets>),
    /// No earlier run.
    Nothing,
    /// A file that is damaged or not this job's; it now has the name given.
    SetAside {
        /// Present path of the file.
        now: PathBuf,
        /// What was wrong with it.
        why: &'static str,
    },
    /// The file could not be read at all.
    Unreadable(io::Error),
}

impl Store {
    /// The place in `directory` of the job `identity`: the path of its executable, and more where
    /// one executable runs many jobs (an interpreter's script, the metrics of a regulated PID).
    #[must_use]
    pub fn new(directory: PathBuf, identity: String) -> Self {
        Self { directory, identity }
    }

    /// The file: the executable's name, for people, and a sum of the whole identity.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        let path = self.identity.split('\0').next().unwrap_or_default();
        let name: String = Path::new(path)
            .file_name()
            .map_or_else(|| "job".into(), |name| name.to_string_lossy())
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_+".contains(c) { c } else { '_' })
            .take(64)
            .collect();
        self.directory.join(format!("{name}-{:016x}.targets", fnv1a(self.identity.as_bytes())))
    }

    /// Reads the targets of earlier runs. Never fails: every outcome has a name.
    #[must_use]
    pub fn load(&self) -> Loaded {
        let file = self.file();
        let text = match crate::testpoint::paths::read_own(&file, LONGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Loaded::Nothing,
            Err(error) => return Loaded::Unreadable(error),
        };
        match self.parse(&text) {
            Ok(targets) => Loaded::Targets(Box::new(targets)),
            Err(why) => self.set_aside(&file, why),
        }
    }

    //= ms-manners/7.1-file
    /// What a job starts with: the targets of earlier runs or none, and what its user should know
    /// where those are of no use.
    #[must_use]
    pub fn begin(&self) -> (Targets, Option<String>) {
        let notice = match self.load() {
            Loaded::Targets(targets) => return (*targets, None),
            Loaded::Nothing => None,
            Loaded::SetAside { now, why } => {
                Some(format!("targets set aside as {}: {why}", now.display()))
            }
            Loaded::Unreadable(error) => {
                Some(format!("targets in {} not read: {error}", self.file().display()))
            }
        };
        (Targets::default(), notice)
    }

    fn parse(&self, text: &[u8]) -> Result<Targets, &'static str> {
        let end = text.iter().position(|&b| b == b'\n').ok_or("it has no first line")?;
        let head = std::str::from_utf8(&text[..end]).map_err(|_| "its first line is not text")?;
        let sum = head.strip_prefix(MAGIC).ok_or("it is not a target file of this version")?;
        let body = &text[end + 1..];
        if u64::from_str_radix(sum, 16) != Ok(fnv1a(body)) {
            return Err("its checksum does not match");
        }
        let saved: Saved<Targets> =
            serde_json::from_slice(body).map_err(|_| "its contents cannot be read")?;
        if saved.job != self.identity {
            return Err("it belongs to another job");
        }
        if !saved.targets.is_sound() {
            return Err("its numbers are impossible");
        }
        Ok(saved.targets)
    }

    fn set_aside(&self, file: &Path, why: &'static str) -> Loaded {
        let now = file.with_extension("set-aside");
        match fs::rename(file, &now) {
            Ok(()) => Loaded::SetAside { now, why },
            Err(error) => Loaded::Unreadable(error),
        }
    }

    //= ms-manners/4.3-persistent
    /// Replaces the file by `targets`.
    ///
    /// # Errors
    /// As the file system's: no space, no permission. The old file is then still there.
    pub fn save(&self, targets: &Targets) -> io::Result<()> {
        let body = serde_json::to_vec(&Saved { job: self.identity.clone(), targets })?;
        crate::testpoint::paths::private_directory(&self.directory)?;
        let draft = self.file().with_extension("draft");
        let mut options = OpenOptions::new();
        let out = options.create(true).append(true).mode(0o600).open(&draft)?;
        self.replace(out, &draft, &body)
    }

    /// Writes `out`, the file at `draft` when that was opened, and puts it in the place of the targets.
    fn replace(&self, mut out: File, draft: &Path, body: &[u8]) -> io::Result<()> {
        // Two jobs of one executable may save at once: one is enough, and a draft that a killed
        // job left behind is simply written over.
        if flock(&out, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        // It may have become the targets since it was opened: another job has just saved.
        let (now, opened) = (fs::metadata(draft), out.metadata()?);
        if !now.is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino())) {
            return Ok(());
        }
        let written = write_all(&mut out, body).and_then(|()| fs::rename(draft, self.file()));
        if written.is_err() {
            let _ = fs::remove_file(draft);
        }
        written
    }
}

/// Tries whether targets can be saved in a directory, and leaves nothing there.
///
/// # Errors
/// As [`Store::save`].
pub fn try_out(directory: &Path) -> io::Result<()> {
    crate::testpoint::paths::private_directory(directory)?;
    let trial = directory.join(format!(".trial-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let mut out = options.create(true).write(true).mode(0o600).open(&trial)?;
    let written = out.write_all(&[0; 4096]).and_then(|()| out.sync_data());
    fs::remove_file(&trial).and(written)
}

fn write_all(out: &mut File, body: &[u8]) -> io::Result<()> {
    out.set_len(0)?;
    out.write_all(format!("{MAGIC}{:016x}\n", fnv1a(body)).as_bytes())?;
    out.write_all(body)?;
    out.sync_data()
}

/// Files that were set aside in `directory`, for `discnice status`.
#[must_use]
pub fn set_aside_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|e| e == "set-aside")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store(directory: &Path) -> Store {
        Store::new(directory.to_owned(), "/usr/bin/indexer\0home".into())
    }

    fn targets() -> Targets {
        let mut targets = Targets::default();
        targets.set(3, 2).unwrap();
        targets
    }

    //= ms-manners/4.3-persistent
    #[test]
    fn what_was_saved_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory.path().join("new/one"));
        assert!(matches!(store.load(), Loaded::Nothing));
        store.save(&targets()).unwrap();
        store.save(&targets()).unwrap();
        assert!(matches!(store.load(), Loaded::Targets(found) if *found == targets()));
        assert!(store.file().to_string_lossy().contains("/indexer-"));
        let left = fs::read_dir(directory.path().join("new/one")).unwrap().count();
        assert_eq!(left, 1, "no draft stays behind");
    }

    //= ms-manners/7.1-file
    #[test]
    fn another_jobs_file_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let (mine, other) = (store(directory.path()), {
            Store::new(directory.path().to_owned(), "/usr/bin/other".into())
        });
        other.save(&targets()).unwrap();
        fs::rename(other.file(), mine.file()).unwrap();
        let Loaded::SetAside { now, why } = mine.load() else { panic!("trusted a foreign file") };
        assert!(now.exists() && why.contains("another job"));
        assert_eq!(set_aside_files(directory.path()), [now]);
        assert!(matches!(mine.load(), Loaded::Nothing));
    }

    #[test]
    fn what_another_job_has_saved_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let draft = store.file().with_extension("draft");
        let out = OpenOptions::new().create(true).append(true).open(&draft).unwrap();
        store.save(&targets()).unwrap();
        store.replace(out, &draft, b"torn").unwrap();
        assert!(matches!(store.load(), Loaded::Targets(found) if *found == targets()));
    }

    //= ms-manners/7.1-file
    #[test]
    fn a_disk_that_is_full_keeps_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        store.save(&targets()).unwrap();
        let draft = store.file().with_extension("draft");
        std::os::unix::fs::symlink("/dev/full", draft).unwrap();
        assert!(store.save(&Targets::default()).is_err());
        assert!(matches!(store.load(), Loaded::Targets(found) if *found == targets()));
    }

    proptest! {
        #[test]
        fn no_damage_is_trusted_or_fatal(at in 0usize..2000, bit in 0u8..8, cut in any::<bool>()) {
            let directory = tempfile::tempdir().unwrap();
            let store = store(directory.path());
            store.save(&targets()).unwrap();
            let mut bytes = fs::read(store.file()).unwrap();
            let at = at % bytes.len();
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            fs::write(store.file(), &bytes).unwrap();
            match store.load() {
                Loaded::SetAside { .. } => {}
                // The checksum is hexadecimal, so one bit may turn a digit's case.
                Loaded::Targets(found) => prop_assert!(!cut && *found == targets()),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
