//! A guest and a host that together want more memory than there is: Rate Windows section 2, figure 1.
//!
//! The memory is that of a control group, with swap; both are the frame of the measurement, not a part of
//! the product.

use std::time::{Duration, Instant};

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};
use discnice_units::Bytes;

use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::Lab;
use crate::lab::memory_limit::MemoryLimit;
use crate::lab::swap::Swap;
use crate::proc::resident;

/// The paper's 179 MB, and what the programs need besides what they touch.
const MEMORY: Bytes = Bytes::new(190 << 20);
const SWAP: Bytes = Bytes::new(512 << 20);
const GUEST: &str = "128M";
const HOST: &str = "150M";
const LOW: &str = "50M";
const HIGH: &str = "70M";
/// The host, like the paper's, computes first and uses little processor time then, in milliseconds for each
/// time that it touches all of its memory.
const EAGER: Duration = Duration::from_secs(8);
const LEISURE: &str = "2000";
const PERIOD: Duration = Duration::from_millis(200);

/// When the host comes, when it uses little processor time, when it goes, and the end; seconds.
const TIMES: [f64; 4] = [3.0, 11.0, 26.0, 30.0];

const POLICED: &str = "policed";
const FREE: &str = "not policed";

/// Resident memory of both over time.
pub struct GuestMemory;

impl Experiment for GuestMemory {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice, Requirement::MemoryLimit, Requirement::Swap]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        ([POLICED, FREE].map(|case| (case.into(), 32.0)).into(), scale.rounds(5, 1))
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let _swap = Swap::new(lab, SWAP)?;
        let group = MemoryLimit::new(MEMORY)?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        // Both are guests in processor time.
        let high = if step.case == POLICED { HIGH } else { "unlimited" };
        let options = ["--guest", "--memory-low", LOW, "--memory-high", high];
        let mut touch = lab.workload("touch");
        let guest = group.execute(lab, &lab.limited(&options, touch.arg(GUEST))?)?;
        sample.commands.push(guest.words().to_owned());
        let begin = Instant::now();
        let mut courses = [Vec::new(), Vec::new()];
        let mut host = None;
        while begin.elapsed().as_secs_f64() < TIMES[3] {
            crate::stop::check()?;
            let now = begin.elapsed().as_secs_f64();
            if now >= TIMES[2] {
                host = None;
            } else if now >= TIMES[0] && host.is_none() {
                let eager = EAGER.as_millis().to_string();
                let mut touch = lab.workload("touch");
                touch.args([HOST, "--eager", &eager, "--round", LEISURE]);
                let job = group.execute(lab, &touch)?;
                sample.commands.push(job.words().to_owned());
                host = Some(job);
            }
            for (job, course) in [Some(&guest), host.as_ref()].into_iter().zip(&mut courses) {
                let bytes = job.and_then(|job| resident(job.group()));
                course.extend(bytes.map(|bytes| (now, bytes as f64)));
            }
            std::thread::sleep(PERIOD);
        }
        let running = guest.end()?;
        running.then_some(()).context("the guest ended by itself")?;
        let [guest, host] = courses;
        sample.series.insert("guest resident".into(), guest);
        sample.series.insert("host resident".into(), host);
        Ok(sample)
    }

    /// Keys, in MiB: `alone`, `eager`, `leisure`, `after`: the guest's mean before, beside and after the host;
    /// `host eager`, `host leisure`: the host's; `host not policed`: the latter without thresholds.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let of = |case, name, phase| {
            let samples = record.samples.iter().filter(move |sample| sample.case == case);
            samples.filter_map(move |sample| mean(sample.series.get(name)?, phase)).collect()
        };
        for (phase, key) in ["alone", "eager", "leisure", "after"].into_iter().enumerate() {
            study.report(key, of(POLICED, "guest resident", phase));
        }
        study.report("host eager", of(POLICED, "host resident", 1));
        study.report("host leisure", of(POLICED, "host resident", 2));
        study.report("host not policed", of(FREE, "host resident", 2));
        for case in [POLICED, FREE] {
            let Some(sample) = record.samples.iter().find(|sample| sample.case == case) else {
                continue;
            };
            let series = ["guest", "host"].map(|who| {
                let course = sample.series.get(&format!("{who} resident"));
                let points = course.into_iter().flatten();
                let points = points.map(|(time, bytes)| (*time, bytes / f64::from(1 << 20)));
                Series { name: who.into(), points: points.collect() }
            });
            study.plots.push(Plot {
                title: format!("Resident memory, guest {case}"),
                x_label: "seconds".into(),
                y_label: "MiB".into(),
                chart: Chart::Lines { series: series.into(), threshold: Some(70.0) },
            });
        }
        study
    }
}

/// Mean MiB in a phase; what happens in its first third is the change from the one before.
fn mean(course: &[(f64, f64)], phase: usize) -> Option<f64> {
    let from = phase.checked_sub(1).map_or(0.0, |before| TIMES[before]);
    let (from, to) = (from + (TIMES[phase] - from) / 3.0, TIMES[phase]);
    let within: Vec<f64> = course
        .iter()
        .filter(|point| point.0 >= from && point.0 < to)
        .map(|point| point.1)
        .collect();
    let sum: f64 = within.iter().sum();
    (!within.is_empty()).then(|| sum / within.len() as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_mean() {
        let course: Vec<(f64, f64)> = (0..30)
            .map(|second| {
                (f64::from(second), f64::from(if second < 11 { 1 << 20 } else { 2 << 20 }))
            })
            .collect();
        let means: Vec<f64> = (0..4).filter_map(|phase| mean(&course, phase)).collect();
        assert_eq!(means, [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(mean(&[], 0), None);
    }
}
