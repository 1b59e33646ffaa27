//! Stored records: one JSON file for each measured experiment, in a directory for each day and
//! host. A record holds raw samples, so that it can be studied and printed again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::facts::Facts;

/// Version of the form of a record.
const SCHEMA: u32 = 1;

/// One measurement of one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was varied, such as `rsync, nice 19`.
    pub case: String,
    /// Which repetition, from 0.
    pub round: u32,
    /// The commands that ran, as typed.
    pub commands: Vec<String>,
    /// Numbers by name; times in seconds, sizes in bytes.
    pub values: BTreeMap<String, f64>,
    /// Courses over time by name: seconds, value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Under which circumstances samples may stand in one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Few repetitions, small sizes.
    pub quick: bool,
    /// Version of this program.
    pub evaluator: String,
    /// The emulated disk, in words.
    pub disk: String,
}

/// Everything known of one experiment's measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    schema: u32,
    /// Name of the experiment.
    pub name: String,
    /// When it began, in UTC.
    pub started: String,
    /// Whether all samples are there.
    pub complete: bool,
    /// Circumstances that we choose.
    pub settings: Settings,
    /// Circumstances that we find.
    pub facts: Facts,
    /// Cases that could not be measured, each with its reason.
    pub skipped: Vec<String>,
    /// The samples in the order in which they were taken.
    pub samples: Vec<Sample>,
}

impl Record {
    /// A record without samples.
    #[must_use]
    pub fn new(name: &str, started: String, settings: Settings, facts: Facts) -> Self {
        Self {
            schema: SCHEMA,
            name: name.into(),
            started,
            complete: false,
            settings,
            facts,
            skipped: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Whether the sample of this case and round is there.
    #[must_use]
    pub fn has(&self, case: &str, round: u32) -> bool {
        self.samples.iter().any(|sample| sample.case == case && sample.round == round)
    }
}

/// A directory of records.
#[derive(Debug, Clone)]
pub struct Archive {
    directory: PathBuf,
}

impl Archive {
    /// The records in `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Where the records are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// The record of an experiment; `None` if there is none.
    ///
    /// # Errors
    /// A file is there but cannot be read as a record of this version.
    pub fn load(&self, name: &str) -> anyhow::Result<Option<Record>> {
        let file = self.file(name);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        let record: Record = serde_json::from_slice(&text)
            .with_context(|| format!("{} is no record; move it away", file.display()))?;
        if record.schema != SCHEMA {
            bail!("{} is of form {}, not {SCHEMA}", file.display(), record.schema);
        }
        Ok(Some(record))
    }

    /// Writes a record in one step, so that a crash leaves the earlier one.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn store(&self, record: &Record) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(record).context("cannot print a record")?;
        self.write(&format!("{}.json", record.name), &text)
    }

    /// Writes a file into the directory in one step; returns its path through the directory.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn write(&self, name: &str, text: &[u8]) -> anyhow::Result<()> {
        let file = self.directory.join(name);
        let new = self.directory.join(format!("{name}.new"));
        fs::create_dir_all(&self.directory)
            .and_then(|()| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, &file))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let settings = Settings { quick: true, evaluator: "1".into(), disk: "hdd".into() };
        let mut record = Record::new("x", "now".into(), settings, Facts::default());
        record.samples.push(Sample {
            case: "alone".into(),
            round: 1,
            series: [("rate".to_owned(), vec![(0.5, 7.25)])].into(),
            ..Sample::default()
        });
        record
    }

    #[test]
    fn what_is_stored_comes_back() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let archive = Archive::new(directory.path().join("not/yet"));
        assert!(archive.load("x").expect("nothing there").is_none());
        archive.store(&record()).expect("it can be made");
        let back = archive.load("x").expect("readable").expect("there");
        assert_eq!(back.samples, record().samples);
        assert!(back.has("alone", 1) && !back.has("alone", 0) && !back.has("beside", 1));
    }

    #[test]
    fn a_damaged_or_later_record_is_an_error_and_stays() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let archive = Archive::new(directory.path().into());
        archive.store(&Record { schema: 2, ..record() }).expect("it can be written");
        assert!(archive.load("x").is_err());
        std::fs::write(archive.file("x"), b"{\"schema\":1,").expect("it can be written");
        assert!(archive.load("x").is_err());
        assert!(archive.file("x").exists());
    }
}
