//! The shape of an experiment: requirements, steps, measurement and study kept apart, so that a
//! stored record can be studied and printed again on any machine.
//!
//! To add one: write `eval/paper/NAME.toml`, implement [`Experiment`], name it in
//! `experiments/mod.rs`.

use super::record::{Record, Sample};
use super::requirement::Requirement;
use super::study::Study;
use crate::lab::Lab;

/// One sample to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is varied.
    pub case: String,
    /// Which repetition.
    pub round: u32,
    /// About how long it takes, in seconds.
    pub seconds: f64,
    /// How much is measured.
    pub scale: Scale,
}

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Few repetitions: shows the phenomenon, not its spread.
    pub quick: bool,
    /// Repetitions of every case, whatever an experiment would choose.
    pub repetitions: Option<u32>,
}

impl Scale {
    /// Repetitions: `full` of them, or `quick`.
    #[must_use]
    pub fn rounds(self, full: u32, quick: u32) -> u32 {
        if self.quick { quick } else { full }
    }
}

/// Something that can be measured.
pub trait Experiment: Sync {
    /// What it needs of the machine.
    fn requirements(&self) -> Vec<Requirement>;

    /// Cases with about how many seconds a sample takes, and how many rounds of them.
    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32);

    /// How many of `all` rounds one case gets: fewer where it takes long and hardly varies.
    fn rounds(&self, _case: &str, _scale: Scale, all: u32) -> u32 {
        all
    }

    /// Whether every second round goes through the cases backwards: where they differ by less than a machine
    /// drifts while a round lasts.
    fn alternates(&self) -> bool {
        false
    }

    /// Why a case cannot be measured on this machine; `None` if it can.
    fn cannot(&self, _lab: &Lab, _case: &str) -> Option<String> {
        None
    }

    /// Makes the files that the steps use. Takes no emulated time.
    ///
    /// # Errors
    /// The machine refuses something; ends the experiment.
    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()>;

    /// Takes one sample.
    ///
    /// # Errors
    /// A program under test fails, or a stop was requested; the step stays to be done.
    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample>;

    /// Makes numbers and plots of samples, which may be few of those asked for.
    fn study(&self, record: &Record) -> Study;
}

/// All steps of an experiment: round by round, so that cases of one round can be paired.
#[must_use]
pub fn steps(experiment: &dyn Experiment, scale: Scale) -> Vec<Step> {
    let (cases, chosen) = experiment.cases(scale);
    let rounds = |case: &str| match scale.repetitions {
        Some(repetitions) => repetitions,
        None => experiment.rounds(case, scale, chosen),
    };
    (0..scale.repetitions.unwrap_or(chosen))
        .flat_map(|round| {
            let wanted = cases.iter().filter(|(case, _)| round < rounds(case));
            let step = |(case, seconds): &(String, f64)| Step {
                case: case.clone(),
                round,
                seconds: *seconds,
                scale,
            };
            let mut steps: Vec<Step> = wanted.map(step).collect();
            if experiment.alternates() && round % 2 == 1 {
                steps.reverse();
            }
            steps
        })
        .collect()
}

/// What becomes of one table or figure.
pub enum Body {
    /// It is measured.
    Measured(&'static dyn Experiment),
    /// It shows other experiments' records in another way.
    View {
        /// Names of the experiments.
        of: &'static [&'static str],
        /// Makes numbers and plots of those records that are there.
        study: fn(&[Record]) -> Study,
    },
    /// It cannot be measured yet; says which part of the product is missing.
    Missing(&'static str),
}

/// A table or figure by name.
pub struct Entry {
    /// Such as `discnice-table-1`.
    pub name: &'static str,
    /// Text of the paper file.
    pub paper: &'static str,
    /// What becomes of it.
    pub body: Body,
}
