//! A directory that ages and is refreshed: gray-box section 4.2.3, figure 6, by plain means.

use std::fs;
use std::path::Path;

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};

use super::file_order::{Order, list, make_files, read_in_order};
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, median, of_case};
use crate::lab::{Lab, files};
use crate::random::Random;

/// Figure 6: 100 files; in each epoch five are deleted and five created.
const FILES: usize = 100;
const CHANGED: usize = 5;
/// The directory is refreshed after this epoch.
const LAST_EPOCH: u32 = 30;

/// One round ages one directory through all epochs; its sample holds the courses.
pub struct Aging;

impl Experiment for Aging {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let points = if scale.quick { 6.0 } else { f64::from(LAST_EPOCH) + 1.0 };
        (vec![(case(scale).into(), points * 2.5)], scale.rounds(5, 1))
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let folder = lab.folder().join(format!("aging-{}", step.round));
        lab.in_no_time(|| {
            fs::create_dir(&folder).context("cannot make a folder")?;
            make_files(lab, &folder, 0, FILES)
        })?;
        let every = if step.case == QUICK { 6 } else { 1 };
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        let mut random = Random::new(u64::from(step.round) + 100);
        for epoch in 0..=LAST_EPOCH {
            if epoch > 0 {
                lab.in_no_time(|| age(lab, &folder, epoch, &mut random))?;
            }
            if epoch % every == 0 {
                point(lab, &folder, epoch, step.round, &mut sample)?;
            }
        }
        lab.in_no_time(|| refresh(lab, &folder))?;
        point(lab, &folder, LAST_EPOCH + 1, step.round, &mut sample)?;
        Ok(sample)
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for name in ["fresh", "aged", "refreshed"] {
            for case in [QUICK, FULL] {
                let random = of_case(&record.samples, case, &format!("random {name}"));
                let sorted = of_case(&record.samples, case, &format!("i-number {name}"));
                if !random.is_empty() {
                    let gains = random.iter().zip(&sorted).map(|(r, i)| r / i).collect();
                    study.report(&format!("gain {name}"), gains);
                }
            }
        }
        let ages =
            |value: &str| [QUICK, FULL].map(|case| of_case(&record.samples, case, value)).concat();
        let pairs = |top: &str, bottom: &str| -> Vec<f64> {
            ages(top).iter().zip(ages(bottom)).map(|(a, b)| a / b).collect()
        };
        study.report("decay", pairs("i-number aged", "i-number fresh"));
        study.report("recovery", pairs("i-number refreshed", "i-number fresh"));
        study.plots.push(Plot {
            title: format!("Reading {FILES} files of 8 KB; refreshed after epoch {LAST_EPOCH}"),
            x_label: "epoch".into(),
            y_label: "seconds".into(),
            chart: Chart::Lines {
                series: ["random", "i-number"].map(|name| course(record, name)).into(),
                threshold: None,
            },
        });
        study
    }
}

const QUICK: &str = "every sixth epoch";
const FULL: &str = "every epoch";

fn case(scale: Scale) -> &'static str {
    if scale.quick { QUICK } else { FULL }
}

/// Deletes five files by lot and creates five.
fn age(lab: &Lab, folder: &Path, epoch: u32, random: &mut Random) -> anyhow::Result<()> {
    let mut files = list(folder)?;
    random.shuffle(&mut files);
    for file in files.iter().take(CHANGED) {
        fs::remove_file(file).context("cannot delete a file")?;
    }
    make_files(lab, folder, FILES + epoch as usize * CHANGED, CHANGED)
}

/// Copies the files, in the order of their i-numbers, to a new directory that takes the old one's
/// place.
fn refresh(lab: &Lab, folder: &Path) -> anyhow::Result<()> {
    let new = folder.with_extension("new");
    fs::create_dir(&new).context("cannot make a folder")?;
    let mut old = list(folder)?;
    Order::INumber.sort(&mut old, 0)?;
    for file in &old {
        let name = file.file_name().context("a file without a name")?;
        fs::copy(file, new.join(name)).context("cannot copy a file")?;
        files::give(lab, &new.join(name))?;
    }
    fs::remove_dir_all(folder).context("cannot remove the old folder")?;
    fs::rename(&new, folder).context("cannot rename the new folder")
}

/// Measures both orders at one epoch.
fn point(
    lab: &Lab,
    folder: &Path,
    epoch: u32,
    round: u32,
    sample: &mut Sample,
) -> anyhow::Result<()> {
    let name = match epoch {
        0 => Some("fresh"),
        LAST_EPOCH => Some("aged"),
        epoch if epoch > LAST_EPOCH => Some("refreshed"),
        _ => None,
    };
    for order in [Order::Random, Order::INumber] {
        let mut files = list(folder)?;
        order.sort(&mut files, round * 100 + epoch)?;
        let read = read_in_order(lab, &files)?;
        let seconds = read.values["seconds"];
        let course = sample.series.entry(order.case().into()).or_default();
        course.push((f64::from(epoch), seconds));
        if let Some(name) = name {
            sample.values.insert(format!("{} {name}", order.case()), seconds);
        }
        if sample.commands.len() < 2 {
            sample.commands.extend(read.commands);
        }
    }
    Ok(())
}

/// Median over the rounds at each epoch.
fn course(record: &Record, name: &str) -> Series {
    let all = || record.samples.iter().filter_map(|sample| sample.series.get(name)).flatten();
    let points = (0..=LAST_EPOCH + 1)
        .filter_map(|epoch| {
            let at: Vec<f64> =
                all().filter(|(x, _)| *x == f64::from(epoch)).map(|(_, y)| *y).collect();
            Some((f64::from(epoch), median(&at)?))
        })
        .collect();
    Series { name: format!("{name} order"), points }
}
