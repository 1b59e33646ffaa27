//! What each module of the prediction costs a foreground, and gains the background: DiscNice section 6.2,
//! table 6.

use anyhow::bail;
use discnice_plot::{Chart, Plot};
use discnice_units::Bytes;

use super::modules::{ALL_ON, CONFIGURATIONS, FILES, MADE, Sizes};
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case, ratios};
use crate::lab::job::Job;
use crate::lab::{Lab, files};

/// The paper's threshold in bytes a second.
const RATE: u64 = 3_000_000;
const MEGABYTE: u64 = 1_000_000;
const FOREGROUND: &str = "foreground";

const fn sizes(scale: Scale) -> Sizes {
    if scale.quick {
        Sizes { random: 3 * MEGABYTE, stride: 24 * MEGABYTE, times: 300 }
    } else {
        Sizes { random: 20 * MEGABYTE, stride: 60 * MEGABYTE, times: 3000 }
    }
}

/// What the foreground reads: it ends before the background does.
const fn foreground(scale: Scale) -> u64 {
    if scale.quick { 100 * MEGABYTE } else { 400 * MEGABYTE }
}

/// The benchmark of four phases under each configuration, beside a sequential read.
pub struct ModulesBeside;

impl Experiment for ModulesBeside {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Prediction, Requirement::Memory(Bytes::new(1 << 30))]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let sizes = sizes(scale);
        let cases = CONFIGURATIONS
            .map(|(name, modules)| (name.to_owned(), sizes.charged(name, modules) / RATE as f64));
        (cases.into(), scale.rounds(5, 1))
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        sizes(scale).prepare(lab)?;
        files::make(lab, &lab.folder().join(FOREGROUND), foreground(scale))
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let Some((_, modules)) = CONFIGURATIONS.iter().find(|(name, _)| *name == step.case) else {
            bail!("no configuration {}", step.case)
        };
        lab.cold()?;
        let times = sizes(step.scale).times.to_string();
        let mut bench = lab.workload("phases");
        bench.args(FILES).args([MADE, "--times", &times, "--stride-first"]);
        let rate = format!("{RATE}B");
        let limits = ["--disk", &rate, "--estimator", "predict", "--estimator-modules", modules];
        let bench = Job::start(&mut lab.limited(&limits, &bench)?)?;
        let mut sequential = lab.workload("sequential");
        let sequential = Job::start(sequential.arg(FOREGROUND))?;
        let commands = vec![sequential.words().to_owned(), bench.words().to_owned()];
        let values = [("sequential", sequential.finish()?), ("bench", bench.finish()?)];
        let values = values.map(|(name, seconds)| (format!("{name} seconds"), seconds)).into();
        Ok(Sample {
            case: step.case.clone(),
            round: step.round,
            commands,
            values,
            ..Sample::default()
        })
    }

    /// Keys: `sequential CONFIGURATION`, `bench CONFIGURATION`: time over that with all modules on;
    /// `seconds` before either: the time.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for program in ["sequential", "bench"] {
            let value = format!("{program} seconds");
            let mut boxes = Vec::new();
            for (name, _) in CONFIGURATIONS {
                let seconds = of_case(&record.samples, name, &value);
                boxes.push((name.to_owned(), seconds.clone()));
                study.report(&format!("seconds {program} {name}"), seconds);
                let times = ratios(&record.samples, name, ALL_ON, &value);
                study.report(&format!("{program} {name}"), times);
            }
            study.plots.push(Plot {
                title: format!("Time of {program} by configuration of the other"),
                x_label: String::new(),
                y_label: "seconds".into(),
                chart: Chart::Boxes(boxes),
            });
        }
        study
    }
}
