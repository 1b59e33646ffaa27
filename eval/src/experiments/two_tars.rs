//! A constrained tar beside one that is not: Rate Windows section 4, figure 4.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};

use crate::disk;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case, ratios};
use crate::lab::job::Job;
use crate::lab::sampler::Sampler;
use crate::lab::{Lab, files};

const MEGABYTE: u64 = 1_000_000;
const FILE_BYTES: u64 = 20 * MEGABYTE;
/// What each of the two packs; the guest never comes to its end.
const HOST_FILES: u64 = 10;
const GUEST_FILES: u64 = 35;
/// The guest gets a tenth of the disk's 48 MB/s while the host is busy.
const THRESHOLD: &str = "4.8MB";
/// Its threshold in bytes a second.
const THRESHOLD_RATE: f64 = 4.8e6;
/// Before the host and after it.
const APART: Duration = Duration::from_secs(4);
/// Each change takes so many seconds at most to be noticed.
const SETTLES: f64 = 2.0;
const SCHEDULER: &str = "mq-deadline";

const ALONE: &str = "host alone";
const POLICED: &str = "policed";
/// Policed, with its threshold as its least rate.
const KEPT: &str = "threshold kept";
const FREE: &str = "not policed";

/// The guest's rate before, beside and after the host.
pub struct TwoTars;

impl Experiment for TwoTars {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice, Requirement::Program("tar")]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = [(ALONE, 4.5), (POLICED, 14.0), (KEPT, 15.0), (FREE, 25.0)];
        (cases.map(|(case, seconds)| (case.into(), seconds)).into(), scale.rounds(5, 1))
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        for (name, count) in [("host", HOST_FILES), ("guest", GUEST_FILES)] {
            let folder = lab.folder().join(name);
            fs::create_dir(&folder).context("cannot make a folder")?;
            files::give(lab, &folder)?;
            for number in 0..count {
                files::make(lab, &folder.join(format!("file-{number:02}")), FILE_BYTES)?;
            }
        }
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        disk::set_scheduler(lab.device()?, SCHEDULER)?;
        lab.cold()?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        let guest = self.guest(lab, &step.case)?;
        let begin = Instant::now();
        let groups = guest.iter().map(|job| ("guest", job.group())).collect();
        let sampler = Sampler::start(lab.device()?.to_owned(), groups)?;
        if guest.is_some() {
            std::thread::sleep(APART);
        }
        sample.values.insert("begin".into(), begin.elapsed().as_secs_f64());
        let host = Job::start(&mut pack(lab, "host"))?;
        sample.commands.extend(guest.iter().map(|job| job.words().to_owned()));
        sample.commands.push(host.words().to_owned());
        sample.values.insert("seconds".into(), host.finish()?);
        sample.values.insert("end".into(), begin.elapsed().as_secs_f64());
        if let Some(guest) = guest {
            std::thread::sleep(APART);
            guest.end()?;
        }
        sample.series.insert("guest".into(), sampler.finish()?.rate("guest", 0.5));
        Ok(sample)
    }

    /// Keys: `beside`, `after`: the guest's rate over that before; `kept`: beside the host over its threshold, where that
    /// is its least rate, and `kept beside`: over the rate before the host of a guest that is not policed; `policed`, `threshold kept`, `not policed`: the host's slowdown; `gain`: its time without
    /// policing over that with it.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let of = |sample, phase| rate(sample, "guest", phase, SETTLES);
        let shares = |case, phase| {
            let all = record.samples.iter().filter(move |sample| sample.case == case);
            all.filter_map(move |s| Some(of(s, phase)? / of(s, 0)?)).collect()
        };
        study.report("beside", shares(POLICED, 1));
        study.report("after", shares(POLICED, 2));
        let rates = |case: &'static str, phase| {
            let all = record.samples.iter().filter(move |sample| sample.case == case);
            all.filter_map(move |s| Some((s.round, of(s, phase)?)))
        };
        study.report("kept", rates(KEPT, 1).map(|(_, rate)| rate / THRESHOLD_RATE).collect());
        let alone = |round| rates(FREE, 0).find(|(other, _)| *other == round).map(|one| one.1);
        let kept = rates(KEPT, 1).filter_map(|(round, rate)| Some(rate / alone(round)?));
        study.report("kept beside", kept.collect());
        for case in [POLICED, KEPT, FREE] {
            study.report(case, ratios(&record.samples, case, ALONE, "seconds"));
        }
        study.report("gain", ratios(&record.samples, FREE, POLICED, "seconds"));
        let groups = [ALONE, POLICED, KEPT, FREE]
            .map(|case| (case.to_owned(), of_case(&record.samples, case, "seconds")));
        study.plots.push(Plot {
            title: "Time of the host".into(),
            x_label: String::new(),
            y_label: "seconds".into(),
            chart: Chart::Boxes(groups.into()),
        });
        let series = [POLICED, KEPT, FREE].map(|case| {
            let sample = record.samples.iter().find(|sample| sample.case == case);
            let course = sample.and_then(|sample| sample.series.get("guest"));
            let points = course.into_iter().flatten().map(|(time, rate)| (*time, rate / 1e6));
            Series { name: case.into(), points: points.collect() }
        });
        study.plots.push(Plot {
            title: "Disk rate of the guest; the host comes after 4 s".into(),
            x_label: "seconds".into(),
            y_label: "MB/s".into(),
            chart: Chart::Lines { series: series.into(), threshold: Some(4.8) },
        });
        study
    }
}

impl TwoTars {
    fn guest(&self, lab: &Lab, case: &str) -> anyhow::Result<Option<Job>> {
        let plain = pack(lab, "guest");
        match case {
            ALONE => Ok(None),
            POLICED => {
                let options = ["--disk", THRESHOLD, "--when", "busy"];
                Job::start(&mut lab.limited(&options, &plain)?).map(Some)
            }
            KEPT => {
                let options = ["--disk", THRESHOLD, "--when", "busy", "--at-least", THRESHOLD];
                Job::start(&mut lab.limited(&options, &plain)?).map(Some)
            }
            _ => Job::start(&mut pack(lab, "guest")).map(Some),
        }
    }
}

/// tar(1) reads nothing if it sees that its output is /dev/null.
fn pack(lab: &Lab, folder: &str) -> std::process::Command {
    let mut command = lab.command("sh");
    command.args(["-c", "tar --create \"$1\" | cat > /dev/null", "sh", folder]);
    command
}

/// The mean rate of a course before, beside or after the host (phase 0, 1, 2); what comes within `settles`
/// seconds of a change, in which a guest may still be finding out, does not count.
pub(super) fn rate(sample: &Sample, course: &str, phase: usize, settles: f64) -> Option<f64> {
    let (begin, end) = (*sample.values.get("begin")?, *sample.values.get("end")?);
    let (from, to) = [(0.0, begin), (begin + settles, end), (end + settles, f64::INFINITY)][phase];
    let course = sample.series.get(course)?;
    let within: Vec<f64> = course
        .iter()
        .filter(|point| point.0 > from && point.0 <= to)
        .map(|point| point.1)
        .collect();
    (!within.is_empty()).then(|| within.iter().sum::<f64>() / within.len() as f64)
}
