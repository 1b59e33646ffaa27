//! What to regulate, and how.

use std::path::PathBuf;

use discnice_processes::tree::Process;

use crate::control::metric::Metric;
use crate::control::phase::Phases;
use crate::model::Config;

/// What to regulate, and how.
#[derive(Debug, Clone)]
pub struct RegulatorOptions {
    /// The processes; their descendants belong to the job.
    pub roots: Vec<Process>,
    /// What counts as progress; at least one.
    pub metrics: Vec<Metric>,
    /// What tells which phase the job is in; `None`: it has one.
    pub phases: Option<Phases>,
    /// What else the job's pace depends on (the limits that it is under): targets are kept by it.
    pub circumstances: String,
    /// Parameters of the regulation.
    pub config: Config,
    /// Directory for targets; `None` keeps none.
    pub targets: Option<PathBuf>,
    /// Set if polite jobs of this user take turns.
    pub take_turns: bool,
    /// Priority relative to other polite jobs; `None` is that of the class that the job is in, else 100.
    pub priority: Option<u32>,
    /// The directory for reports to other programs; `None` writes none.
    pub reports: Option<PathBuf>,
}
