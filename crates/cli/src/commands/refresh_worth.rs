//! What `refresh --when-worth` keeps of a directory between its looks, and what it decides.

use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use discnice_escape::Foreign;
use discnice_graybox::fldc::refresh::Survey;
use discnice_graybox::fldc::refresh::worth::{DiskFigures, Worth};
use discnice_graybox::input::{reason, shown};
use discnice_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::fresh;
use crate::output::{say, tell};

const VERSION: u32 = 1;
/// A longer file is no history.
const LONGEST: u64 = 1 << 20;
/// Looks that are kept.
const LOOKS: usize = 400;
const DAY: f64 = 86_400.0;

/// One look at a directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Look {
    /// Seconds since 1970.
    at: u64,
    files: u64,
    extents: u64,
    seeks: u64,
    /// What readings had lost by then.
    lost_seconds: f64,
    /// Whether a refresh followed, and the seeks after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seeks_after: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    version: u32,
    directory: String,
    lost_seconds: f64,
    weight: u32,
    looks: Vec<Look>,
}

/// What is known of a directory.
#[derive(Debug)]
pub struct History {
    file: PathBuf,
    kept: Kept,
    worth: Worth,
}

impl History {
    /// Reads what earlier looks have left. What cannot be used is told, and begun anew.
    ///
    /// # Errors
    /// There is no directory that it could be in.
    pub fn of(directory: &Path) -> Result<Self> {
        let folder = discnice_paths::refreshes().ok_or_else(|| {
            anyhow!(
                "--when-worth keeps a history; set HOME or XDG_STATE_HOME to a directory of yours"
            )
        })?;
        let absolute = directory.canonicalize().and_then(|path| Ok((fs::metadata(&path)?, path)));
        let (facts, path) =
            absolute.map_err(|error| anyhow!("{}: {}", shown(directory), reason(&error)))?;
        // No device number: it may be another one after each start of the machine.
        let hash = discnice_paths::fnv1a(path.as_os_str().as_bytes());
        let file = folder.join(format!("{hash:016x}-{:x}.json", facts.ino()));
        let name = path.to_string_lossy().into_owned();
        let kept = match read(&file) {
            Ok(kept) => kept.filter(|kept| kept.version == VERSION && kept.directory == name),
            Err(error) => {
                let file = Foreign::path(&file);
                tell!("discnice: {file}: {error}; the history of {} begins anew", shown(directory));
                None
            }
        };
        let kept = kept.unwrap_or(Kept {
            version: VERSION,
            directory: name,
            lost_seconds: 0.0,
            weight: 1,
            looks: Vec::new(),
        });
        let worth = Worth { lost: kept.lost_seconds.max(0.0), weight: kept.weight.max(1) };
        Ok(Self { file, kept, worth })
    }

    /// Adds a look, before which everything was read so many times a day, and tells what follows; whether a refresh
    /// is due.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn look(
        &mut self,
        dir: &Path,
        now: &Survey,
        disk: &DiskFigures,
        a_day: f64,
    ) -> Result<bool> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // With nothing known of before, one reading.
        let last = self.kept.looks.last().map(|look| at.saturating_sub(look.at));
        let readings = last.map_or(1.0, |seconds| seconds as f64 / DAY * a_day);
        if let Some(look) = self.kept.looks.last() {
            self.worth.forget(look.seeks_after.unwrap_or(look.seeks), now.seeks);
        }
        self.worth.read(now, disk, readings);
        let (files, extents, seeks) = (now.files, now.extents, now.seeks);
        let look =
            Look { at, files, extents, seeks, lost_seconds: self.worth.lost, seeks_after: None };
        self.kept.looks.push(look);
        let is_due = self.worth.is_due(now, disk);
        let (gain, lost) = (span(disk.gain(now)), span(self.worth.lost));
        let price = span(self.worth.price(now, disk));
        let more = if self.worth.weight > 1 { ", as the last refresh gained little" } else { "" };
        let verdict = if is_due { "worth it" } else { "not worth it yet" };
        say!("{}: {verdict}", shown(dir))?;
        say!("  each reading of all files loses {gain}; lost since the last refresh: {lost}")?;
        say!("  a refresh is worth it from {price} on{more}")?;
        Ok(is_due)
    }

    /// Returns true if there has been a look.
    pub fn is_begun(&self) -> bool {
        !self.kept.looks.is_empty()
    }

    /// Notes a refresh.
    pub fn refreshed(&mut self, before: &Survey, after: &Survey, disk: &DiskFigures) {
        self.worth.refreshed(before, after, disk);
        if let Some(look) = self.kept.looks.last_mut() {
            look.seeks_after = Some(after.seeks);
        }
    }

    /// Writes it; a reader sees the old one or the new one.
    ///
    /// # Errors
    /// As the file system's.
    pub fn save(&mut self) -> Result<()> {
        self.kept.lost_seconds = self.worth.lost;
        self.kept.weight = self.worth.weight;
        let surplus = self.kept.looks.len().saturating_sub(LOOKS);
        self.kept.looks.drain(..surplus);
        let written = self.file.parent().map_or(Ok(()), |folder| self.write(folder));
        written.map_err(|error| {
            let file = Foreign::path(&self.file);
            anyhow!("cannot keep the history in {file}: {}", reason(&error))
        })
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        discnice_paths::private_directory(folder)?;
        let mut draft = fresh::file(folder, ".history-", 0o600)?;
        draft.write_all(&serde_json::to_vec(&self.kept)?)?;
        draft.as_file().sync_all()?;
        draft.persist(&self.file)?;
        Ok(())
    }
}

/// The history in a file; `None` where there is no file.
fn read(file: &Path) -> Result<Option<Kept>> {
    match discnice_paths::read_own(file, LONGEST) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text).context("it is no history")?)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn span(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}
