//! The order in which small files are read: gray-box section 4.2, figures 5 and 6, by plain means
//! (stat(2) and a sort; filefrag(8) for the physical order).

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use discnice_plot::{Chart, Plot};

use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, cases, of_case, ratios};
use crate::lab::job::Job;
use crate::lab::{Lab, files};
use crate::random::Random;
use crate::tool;

/// Size of each file: 8 KB in figures 5 and 6.
pub const FILE_BYTES: u64 = 8192;
/// Figure 5: 200 files in two directories.
const FILES: usize = 200;

/// An order of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Any, a new one each round.
    Random,
    /// By directory, at random within each.
    Directory,
    /// By i-number.
    INumber,
    /// By the place of the first block on the disk.
    Physical,
}

impl Order {
    const ALL: [Self; 4] = [Self::Random, Self::Directory, Self::INumber, Self::Physical];

    /// Name of the case in records.
    #[must_use]
    pub const fn case(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Directory => "directory",
            Self::INumber => "i-number",
            Self::Physical => "physical",
        }
    }

    fn of_case(case: &str) -> anyhow::Result<Self> {
        let found = Self::ALL.into_iter().find(|order| order.case() == case);
        found.with_context(|| format!("no order {case}"))
    }

    /// Brings `files` into this order; `round` seeds the random part.
    ///
    /// # Errors
    /// A file cannot be examined.
    pub fn sort(self, files: &mut [PathBuf], round: u32) -> anyhow::Result<()> {
        Random::new(u64::from(round) + 1).shuffle(files);
        match self {
            Self::Random => {}
            Self::Directory => files.sort_by_key(|file| file.parent().map(Path::to_owned)),
            Self::INumber => {
                let mut numbered = files
                    .iter()
                    .map(|file| Ok((fs::metadata(file)?.ino(), file.clone())))
                    .collect::<std::io::Result<Vec<_>>>()
                    .context("cannot examine a file")?;
                numbered.sort();
                for (place, (_, file)) in files.iter_mut().zip(numbered) {
                    *place = file;
                }
            }
            Self::Physical => {
                let mut placed = first_blocks(files)?;
                placed.sort();
                for (place, (_, file)) in files.iter_mut().zip(placed) {
                    *place = file;
                }
            }
        }
        Ok(())
    }
}

/// First physical block of each file, as filefrag(8) prints it.
fn first_blocks(files: &[PathBuf]) -> anyhow::Result<Vec<(u64, PathBuf)>> {
    let text = tool::run(
        "filefrag",
        [Path::new("-v")].into_iter().chain(files.iter().map(PathBuf::as_path)),
    )?;
    let blocks = parse_filefrag(&text);
    if blocks.len() != files.len() {
        bail!("filefrag tells the place of {} of {} files", blocks.len(), files.len());
    }
    Ok(blocks.into_iter().zip(files.iter().cloned()).collect())
}

/// Lines of first extents look like `   0:        0..       1:      34816..     34817:  …`.
fn parse_filefrag(text: &str) -> Vec<u64> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.trim_start().split(':');
            if parts.next()? != "0" {
                return None;
            }
            parts.nth(1)?.split("..").next()?.trim().parse().ok()
        })
        .collect()
}

/// Reads `files` in their order from a cold cache; returns the sample without its case.
///
/// # Errors
/// A file cannot be read.
pub fn read_in_order(lab: &Lab, files: &[PathBuf]) -> anyhow::Result<Sample> {
    let list = lab.memory().join("list");
    let mut out = Vec::new();
    for file in files {
        writeln!(out, "{}", file.display())?;
    }
    fs::write(&list, out).context("cannot write the list of files")?;
    lab.cold()?;
    let mut command = lab.workload("files");
    let job = Job::start(command.arg(&list))?;
    let commands = vec![job.words().to_owned()];
    let seconds = job.finish()?;
    Ok(Sample { commands, values: [("seconds".to_owned(), seconds)].into(), ..Sample::default() })
}

/// Makes `count` files of [`FILE_BYTES`] in `folder`, named by number from `first`.
///
/// # Errors
/// The disk is full.
pub fn make_files(lab: &Lab, folder: &Path, first: usize, count: usize) -> anyhow::Result<()> {
    for number in first..first + count {
        files::make(lab, &folder.join(format!("file-{number:05}")), FILE_BYTES)?;
    }
    Ok(())
}

/// The files of a directory.
///
/// # Errors
/// It cannot be read.
pub fn list(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

/// Gray-box figure 5.
pub struct FileOrder;

impl Experiment for FileOrder {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Program("filefrag")]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let seconds =
            |order| if matches!(order, Order::Random | Order::Directory) { 3.0 } else { 0.5 };
        let cases = Order::ALL.map(|order| (order.case().to_owned(), seconds(order)));
        (cases.into(), scale.rounds(30, 5))
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        for folder in ["one", "two"] {
            let folder = lab.folder().join(folder);
            fs::create_dir(&folder).context("cannot make a folder")?;
            make_files(lab, &folder, 0, FILES / 2)?;
        }
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let mut files = list(&lab.folder().join("one"))?;
        files.extend(list(&lab.folder().join("two"))?);
        Order::of_case(&step.case)?.sort(&mut files, step.round)?;
        let sample = read_in_order(lab, &files)?;
        Ok(Sample { case: step.case.clone(), round: step.round, ..sample })
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let mut boxes = Vec::new();
        for case in cases(&record.samples) {
            let seconds = of_case(&record.samples, case, "seconds");
            boxes.push((case.to_owned(), seconds.clone()));
            study.report(&format!("seconds {case}"), seconds);
            let gain = ratios(&record.samples, Order::Random.case(), case, "seconds");
            study.report(&format!("gain {case}"), gain);
        }
        study.plots.push(Plot {
            title: "Reading 200 files of 8 KB in two directories".into(),
            x_label: String::new(),
            y_label: "seconds".into(),
            chart: Chart::Boxes(boxes),
        });
        study
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filefrag_output() {
        let text = "Filesystem type is: ef53\n\
            File size of a is 8192 (2 blocks of 4096 bytes)\n \
            ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
            0:        0..       0:      34816..     34816:      1:\n   \
            1:        1..       1:      99999..     99999:      1:      34817: last,eof\n\
            a: 2 extents found\n";
        assert_eq!(parse_filefrag(text), [34816]);
    }

    #[test]
    fn orders_of_real_files() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut files: Vec<PathBuf> =
            (0..40).map(|n| directory.path().join(format!("{}", (n * 7) % 40))).collect();
        for file in &files {
            fs::write(file, b"x").expect("it can be written");
        }
        let numbers = |files: &[PathBuf]| -> Vec<u64> {
            files.iter().map(|f| fs::metadata(f).expect("it is there").ino()).collect()
        };
        Order::Random.sort(&mut files, 0).expect("no I/O");
        assert!(!numbers(&files).is_sorted());
        Order::INumber.sort(&mut files, 0).expect("they are there");
        assert!(numbers(&files).is_sorted());
        files.push("/no/such/file".into());
        assert!(Order::INumber.sort(&mut files, 0).is_err());
    }
}
