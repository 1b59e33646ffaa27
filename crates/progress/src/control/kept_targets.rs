//! The targets of a job and where they are kept.

use std::io;
use std::path::PathBuf;

use discnice_processes::tree::Process;
use discnice_units::{Moment, Nanos};

use crate::control::job_identity;
use crate::control::metric::Metric;
use crate::control::options::RegulatorOptions;
use crate::model::Targets;
use crate::testpoint::clock;
use crate::testpoint::store::Store;

/// Targets are saved this often.
const SAVE: Nanos = Nanos(60 * Nanos::SECOND.0);

/// The targets of what the job's first process executes.
pub(crate) struct Kept {
    pub(crate) targets: Targets,
    root: Option<Process>,
    /// What is executed, as [`job_identity::of`] says it.
    job: String,
    /// The rest of the identity: one job may be regulated by different metrics or under different
    /// limits, and their targets have nothing in common.
    circumstances: String,
    directory: Option<PathBuf>,
    saved_at: Moment,
}

impl Kept {
    /// Creates the targets of a job that was not looked at yet: [`Self::follow`] does that.
    pub(crate) fn new(options: &RegulatorOptions) -> Self {
        let metrics: Vec<String> = options.metrics.iter().map(Metric::to_string).collect();
        // Without phases as before there were any, so that targets are found again.
        let phases = options.phases.as_ref().map(|phases| format!("\0phase {phases}"));
        let phases = phases.unwrap_or_default();
        Self {
            targets: Targets::default(),
            root: options.roots.first().copied(),
            job: String::new(),
            circumstances: format!(
                "outside\0{}\0{}{phases}",
                options.circumstances,
                metrics.join("\0")
            ),
            directory: options.targets.clone(),
            saved_at: clock::now(),
        }
    }

    /// Returns where the targets are kept; `None` if they are not, or if it is not known what the process executes.
    fn store(&self) -> Option<Store> {
        let directory = self.directory.clone().filter(|_| !self.job.is_empty())?;
        Some(Store::new(directory, format!("{}\0{}", self.job, self.circumstances)))
    }

    /// Takes over the targets of what the first process executes now, if that has changed: `nice`,
    /// `env` and a shell's `exec` become another program, and their own pace says nothing of that
    /// one's. Returns what the user should know if there was a change.
    pub(crate) fn follow(&mut self) -> Option<Vec<String>> {
        // When the first process has ended, the job is its descendants, and still the same.
        let root = self.root.filter(|root| root.stat().is_some())?;
        let job = job_identity::of(root)?;
        if job == self.job {
            return None;
        }
        let mut notices: Vec<String> =
            self.save().err().map(|error| unsaved(&error)).into_iter().collect();
        self.job = job;
        let (targets, notice) = self.store().as_ref().map(Store::begin).unwrap_or_default();
        self.targets = targets;
        notices.extend(notice);
        Some(notices)
    }

    /// Saves when it is time to.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub(crate) fn tend(&mut self) -> io::Result<()> {
        if clock::now().since(self.saved_at) >= SAVE { self.save() } else { Ok(()) }
    }

    /// Saves.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub(crate) fn save(&mut self) -> io::Result<()> {
        self.saved_at = clock::now();
        // What taught nothing has nothing to say to the next run.
        if self.targets.iter().next().is_none() {
            return Ok(());
        }
        self.store().map_or(Ok(()), |store| store.save(&self.targets))
    }
}

/// What to tell of targets that could not be saved.
pub(crate) fn unsaved(error: &io::Error) -> String {
    format!("targets not saved: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Config;
    use std::process::Command;

    fn options(pid: u32, directory: PathBuf) -> RegulatorOptions {
        RegulatorOptions {
            roots: vec![Process::find(pid).unwrap()],
            metrics: Metric::default_set(),
            phases: None,
            circumstances: String::new(),
            reports: None,
            config: Config::default(),
            targets: Some(directory),
            take_turns: false,
            priority: None,
        }
    }

    #[test]
    fn another_program_in_the_same_process_has_other_targets() {
        let folder = tempfile::tempdir().unwrap();
        let mut child =
            Command::new("sh").args(["-c", "sleep 0.5; exec sleep 100"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut kept = Kept::new(&options(child.id(), folder.path().into()));
        assert_eq!(kept.follow(), Some(Vec::new()));
        assert_eq!(kept.follow(), None);
        kept.targets.set(0, 2).unwrap();
        while kept.follow().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(kept.targets.iter().next().is_none(), "a shell's targets are not those of sleep");
        kept.targets.set(0, 2).unwrap();
        kept.save().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(kept.follow(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
