//! What each module of the prediction is good for: DiscNice table 5 and figure 12.

use anyhow::{Context, bail};
use discnice_plot::{Chart, Plot, Series};
use discnice_units::Bytes;

use super::throttle;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case, ratios};
use crate::lab::{Lab, files};

/// The paper's threshold in bytes a second.
const RATE: u64 = 5_000_000;
const MEGABYTE: u64 = 1_000_000;

pub(super) const ALL_ON: &str = "all-on";
/// The paper's names of the configurations, and what of the prediction is on.
pub(super) const CONFIGURATIONS: [(&str, &str); 5] = [
    ("all-off", "none"),
    ("cacheD", "cache"),
    ("readP", "read"),
    ("cacheD&readP", "cache,read"),
    (ALL_ON, "cache,read,write"),
];

/// What is read at random, again and again, and what with strides.
pub(super) const FILES: [&str; 2] = ["phases-random", "phases-stride"];
pub(super) const MADE: &str = "phases-made";

/// Sizes of the four phases.
pub(super) struct Sizes {
    /// Bytes of the file that is read at random, ten times.
    pub(super) random: u64,
    /// Bytes of the file of which one is read every 12 KB.
    pub(super) stride: u64,
    /// How often 10 KB are written anew, and a file of 10 KB is created and unlinked.
    pub(super) times: u64,
}

impl Sizes {
    const fn of(scale: Scale) -> Self {
        if scale.quick {
            Self { random: 3 * MEGABYTE, stride: 40 * MEGABYTE, times: 500 }
        } else {
            Self { random: 200 * MEGABYTE, stride: 200 * MEGABYTE, times: 10_000 }
        }
    }

    /// About how many bytes a configuration is charged.
    pub(super) fn charged(&self, name: &str, modules: &str) -> f64 {
        let once = self.random + self.stride / 3;
        let again = if modules.contains("cache") { 0 } else { 9 * self.random };
        let written = if name == ALL_ON { 0 } else { 2 * self.times * 10_000 };
        (once + again + written) as f64
    }

    /// Makes what is read.
    pub(super) fn prepare(&self, lab: &Lab) -> anyhow::Result<()> {
        let mut files = FILES.into_iter().zip([self.random, self.stride]);
        files.try_for_each(|(name, size)| files::make(lab, &lab.folder().join(name), size))
    }
}

/// The benchmark of four phases under each configuration.
pub struct Modules;

impl Experiment for Modules {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Prediction, Requirement::Memory(Bytes::new(1 << 30))]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let sizes = Sizes::of(scale);
        let cases = CONFIGURATIONS
            .map(|(name, modules)| (name.to_owned(), sizes.charged(name, modules) / RATE as f64));
        (cases.into(), scale.rounds(5, 1))
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        Sizes::of(scale).prepare(lab)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let Some((_, modules)) = CONFIGURATIONS.iter().find(|(name, _)| *name == step.case) else {
            bail!("no configuration {}", step.case)
        };
        lab.cold()?;
        let times = Sizes::of(step.scale).times.to_string();
        let mut command = lab.workload("phases");
        command.args(FILES).args([MADE, "--times", &times]);
        let rate = format!("{RATE}B");
        let limits = ["--disk", &rate, "--estimator", "predict", "--estimator-modules", modules];
        throttle::held(lab, step, &command, &limits)
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let threshold = RATE as f64;
        for (name, _) in CONFIGURATIONS {
            let times = ratios(&record.samples, name, ALL_ON, "seconds");
            study.report(&format!("time {name}"), times);
            let peaks = of_case(&record.samples, name, "peak");
            let peaks = peaks.into_iter().map(|peak| peak / threshold).collect();
            study.report(&format!("peak {name}"), peaks);
            study.plots.extend(plot(record, name).ok());
        }
        study
    }
}

fn plot(record: &Record, name: &str) -> anyhow::Result<Plot> {
    let sample = record.samples.iter().find(|sample| sample.case == name);
    let course = sample.and_then(|sample| sample.series.get("device")).context("no course")?;
    let points = course.iter().map(|(time, rate)| (*time, rate / MEGABYTE as f64)).collect();
    Ok(Plot {
        title: format!("four phases, {name}"),
        x_label: "seconds".into(),
        y_label: "MB/s".into(),
        chart: Chart::Lines {
            series: vec![Series { name: "disk rate".into(), points }],
            threshold: Some(RATE as f64 / MEGABYTE as f64),
        },
    })
}
