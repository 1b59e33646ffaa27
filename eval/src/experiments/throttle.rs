//! Programs at a disk rate limit and without one: DiscNice figures 11 and 13.

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};
use discnice_units::Bytes;

use super::program::{self, Program};
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::lab::sampler::Sampler;

const MEGABYTE: f64 = 1e6;

/// Each program with its threshold in bytes a second.
pub struct Throttle {
    /// What is limited to how much.
    pub programs: &'static [(Program, u64)],
}

const FREE: &str = ", not limited";

impl Experiment for Throttle {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice, Requirement::Memory(Bytes::new(1 << 30))]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = self.programs.iter().flat_map(|(program, rate)| {
            let bytes = program.bytes(scale) as f64;
            let limited = (program.name().to_owned(), bytes / *rate as f64);
            [limited, (format!("{}{FREE}", program.name()), bytes / 20e6)]
        });
        (cases.collect(), scale.rounds(5, 1))
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        self.find(case).ok()?.0.lack(lab)
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        self.programs.iter().try_for_each(|(program, _)| program.prepare(lab, scale))
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let (program, rate) = self.find(&step.case)?;
        lab.in_no_time(|| program.reset(lab))?;
        lab.cold()?;
        let mut command = program.command(lab, step.scale);
        if !step.case.ends_with(FREE) {
            command = lab.limited(&["--disk", &format!("{rate}B")], &command)?;
        }
        let sampler = Sampler::start(lab.device()?.to_owned(), Vec::new())?;
        let begin = std::time::Instant::now();
        let job = Job::start(&mut command)?;
        let commands = vec![job.words().to_owned()];
        job.finish()?;
        // Written data counts when it reaches the disk.
        lab.flush()?;
        let seconds = begin.elapsed().as_secs_f64();
        let courses = sampler.finish()?;
        let mut sample =
            Sample { case: step.case.clone(), round: step.round, commands, ..Sample::default() };
        sample.values.insert("seconds".into(), seconds);
        sample.values.insert("rate".into(), courses.total("device") / seconds);
        let course = courses.rate("device", 1.0);
        let peak = course.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        sample.values.insert("peak".into(), peak);
        sample.series.insert("device".into(), course);
        Ok(sample)
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for (program, rate) in self.programs {
            let (name, rate) = (program.name(), *rate as f64);
            for value in ["rate", "peak"] {
                let numbers = of_case(&record.samples, name, value);
                let shares = numbers.into_iter().map(|number| number / rate);
                study.report(&format!("{value} {name}"), shares.collect());
            }
            let course = |case: &str, words: &str| {
                let sample = record.samples.iter().find(|sample| sample.case == case)?;
                let course = sample.series.get("device")?;
                let points = course.iter().map(|(time, rate)| (*time, rate / MEGABYTE)).collect();
                Some(Series { name: words.into(), points })
            };
            let free = format!("{name}{FREE}");
            let series = [course(name, "limited"), course(&free, "not limited")];
            study.plots.push(Plot {
                title: format!("{name}: disk rate"),
                x_label: "seconds".into(),
                y_label: "MB/s".into(),
                chart: Chart::Lines {
                    series: series.into_iter().flatten().collect(),
                    threshold: Some(rate / MEGABYTE),
                },
            });
        }
        study
    }
}

impl Throttle {
    fn find(&self, case: &str) -> anyhow::Result<(Program, u64)> {
        let name = case.strip_suffix(FREE).unwrap_or(case);
        let programs: Vec<Program> = self.programs.iter().map(|(program, _)| *program).collect();
        let program = program::find(&programs, name)?;
        let found = self.programs.iter().find(|(other, _)| *other == program);
        found.copied().context("a program without a limit")
    }
}
