//! What a few probes tell of a file's cached parts: gray-box section 4.1.1, figure 1.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, chown};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use rustix::fs::Advice;
use serde::Deserialize;

use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::{Lab, files};
use crate::random::Random;
use discnice_plot::{Chart, Plot};

const FILE_BYTES: u64 = 320 << 20;
/// Sizes of the pieces in which half of the file is cached, in MiB.
const PIECES: [u64; 3] = [1, 10, 40];
const PAGE: usize = 4096;

/// The user probes a file of another user; exact counts are known to its owner.
pub struct Probing;

impl Experiment for Probing {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        (PIECES.map(|size| (case(size), 8.0)).into(), scale.rounds(5, 1))
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        let file = lab.folder().join("foreign");
        files::make(lab, &file, FILE_BYTES)?;
        chown(&file, Some(0), Some(0)).context("cannot take the file away from the user")
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let size = PIECES.into_iter().find(|size| case(*size) == step.case);
        let size = size.with_context(|| format!("no case {}", step.case))? << 20;
        let file = lab.folder().join("foreign");
        lab.cold()?;
        lab.in_no_time(|| cache_half(&file, size, u64::from(step.round) + 1))?;
        let truth = self.look(lab, &file, true)?;
        let judged = self.look(lab, &file, false)?;
        if judged.means != "probe" {
            bail!("the file was not probed, but judged by {}", judged.means);
        }
        let (truth, guess) = (truth.pages(), judged.pages());
        let right = truth.iter().zip(&guess).filter(|(a, b)| (**a - **b).abs() < 0.5).count();
        let values = [
            ("right".to_owned(), 100.0 * right as f64 / truth.len().max(1) as f64),
            ("read".to_owned(), 100.0 * judged.pages_read() * PAGE as f64 / FILE_BYTES as f64),
        ];
        Ok(Sample {
            case: step.case.clone(),
            round: step.round,
            commands: vec!["discnice cached --json foreign".into()],
            values: values.into(),
            ..Sample::default()
        })
    }

    /// Keys: `right N MiB`: pages judged right, `read N MiB`: pages that probing read, in %.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for size in PIECES {
            for value in ["right", "read"] {
                let numbers = of_case(&record.samples, &case(size), value);
                study.report(&format!("{value} {}", case(size)), numbers);
            }
        }
        let groups =
            PIECES.map(|size| (case(size), of_case(&record.samples, &case(size), "right")));
        study.plots.push(Plot {
            title: "Pages judged right by probes, half of the file cached in pieces".into(),
            x_label: String::new(),
            y_label: "%".into(),
            chart: Chart::Boxes(groups.into()),
        });
        study
    }
}

fn case(size: u64) -> String {
    format!("{size} MiB")
}

/// Reads every other piece, on average, and nothing around it.
fn cache_half(file: &Path, size: u64, seed: u64) -> anyhow::Result<()> {
    let open = File::open(file).context("cannot open the file")?;
    rustix::fs::fadvise(&open, 0, None, Advice::Random).context("cannot give advice")?;
    let mut pieces: Vec<u64> = (0..FILE_BYTES / size).collect();
    Random::new(seed).shuffle(&mut pieces);
    let mut buffer = vec![0; 64 * 1024];
    for piece in &pieces[..pieces.len() / 2] {
        for offset in (0..size).step_by(buffer.len()) {
            open.read_exact_at(&mut buffer, piece * size + offset)
                .context("cannot read a piece")?;
        }
    }
    Ok(())
}

/// What we use of `discnice cached --json` (docs/graybox.md).
#[derive(Deserialize)]
struct Residency {
    means: String,
    regions: Vec<Region>,
    probing: Effort,
}

#[derive(Deserialize)]
struct Region {
    length: u64,
    cached_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Effort {
    pages_read: u64,
}

impl Residency {
    /// For each page whether it is cached, as a share of its region.
    fn pages(&self) -> Vec<f64> {
        let pages = |region: &Region| {
            let share = region.cached_bytes.unwrap_or(0) as f64 / region.length.max(1) as f64;
            std::iter::repeat_n(share, region.length as usize / PAGE)
        };
        self.regions.iter().flat_map(pages).collect()
    }

    fn pages_read(&self) -> f64 {
        self.probing.pages_read as f64
    }
}

impl Probing {
    /// Asks `discnice cached`, as the owner of the file (root) or as the user.
    fn look(&self, lab: &Lab, file: &Path, as_owner: bool) -> anyhow::Result<Residency> {
        let discnice = lab.site.discnice()?;
        let mut command =
            if as_owner { std::process::Command::new(discnice) } else { lab.command(discnice) };
        let output = command
            .args(["cached", "--json"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .context("cannot run discnice cached")?;
        if !output.status.success() {
            bail!("discnice cached fails: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut all: Vec<Residency> = serde_json::from_slice(&output.stdout)
            .context("what discnice cached prints is not as known")?;
        fs::metadata(file).context("the file is gone")?;
        all.pop().context("discnice cached says nothing")
    }
}
