//! Competing sorts with passes of a given size or one asked of memory admission control: gray-box
//! section 4.3.3, figure
//! 7. The sorting program is an example of crate graybox, built by `cargo build --release -p
//!    discnice-graybox --example mac_sort`.

use std::fs;

use anyhow::{Context, ensure};
use discnice_plot::{Chart, Plot};
use discnice_units::Bytes;

use crate::built;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, median, of_case, ratios};
use crate::lab::Lab;
use crate::lab::memory_limit::MemoryLimit;
use crate::lab::swap::Swap;

/// The paper's four sort 1.9 GB in 830 MB.
const CALLERS: u64 = 4;
const MEMORY: Bytes = Bytes::new(256 << 20);
const SWAP: Bytes = Bytes::new(1 << 30);
const SHARE_MIB: u64 = (MEMORY.get() >> 20) / CALLERS;
/// MAC may give a pass this much at least; the paper's 100 of 477 MB.
const LEAST_MIB: u64 = SHARE_MIB / 4;

const ADMITTED: &str = "admitted";
const TOO_MUCH: &str = "given 125 %";
/// Passes as percents of each caller's share of the memory.
const GIVEN: [(&str, u64); 4] =
    [("given 25 %", 25), ("given 50 %", 50), ("given 75 %", 75), (TOO_MUCH, 125)];

/// What each sort has to do, in MiB.
const fn total(scale: Scale) -> u64 {
    if scale.quick { 192 } else { 384 }
}

/// Four sorts in a memory-limited group with swap.
pub struct Admission;

impl Experiment for Admission {
    fn requirements(&self) -> Vec<Requirement> {
        vec![
            Requirement::Sort,
            Requirement::MemoryLimit,
            Requirement::Swap,
            Requirement::Memory(Bytes::new(2 << 30)),
        ]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = GIVEN.map(|(name, _)| name).into_iter().chain([ADMITTED]);
        let seconds = total(scale) as f64 / 40.0;
        (cases.map(|case| (case.to_owned(), seconds)).collect(), scale.rounds(5, 1))
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let given = GIVEN.iter().find(|(name, _)| *name == step.case);
        let pass = given.map(|(_, percent)| (SHARE_MIB * percent / 100).to_string());
        let (total, least) = (total(step.scale).to_string(), LEAST_MIB.to_string());
        let program = lab.program(&built::SORT.file()?)?;
        let out = lab.memory().join("sorted");
        let [program, out] = [&program, &out].map(|path| path.to_string_lossy().into_owned());
        let script = format!(
            "for i in $(seq {CALLERS}); do \"$1\" \"$2\" \"$3\" \"$4\" >\"$5-$i\" & done; wait"
        );
        let _swap = Swap::new(lab, SWAP)?;
        let group = MemoryLimit::new(MEMORY)?;
        let words = [&program, &total, pass.as_deref().unwrap_or("mac"), &least, &out];
        let job = group.start(lab, &script, &words)?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        sample.commands.push(job.words().to_owned());
        let seconds = job.finish()?;
        let (mut sums, mut finished) = ([0.0; 6], 0.0);
        for caller in 1..=CALLERS {
            // Passes that do not fit can take so much memory that the kernel kills one of the sorts.
            let Some(numbers) = sorted(&format!("{out}-{caller}"))? else { continue };
            finished += 1.0;
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        ensure!(finished > 0.0, "all sorts were killed");
        let [_, _, pass, allocating, waited, faults] = sums;
        for (name, value) in [
            ("seconds", seconds * CALLERS as f64 / finished),
            ("finished", finished),
            ("pass", pass / finished),
            ("seconds in gb_alloc", allocating / finished),
            ("seconds waited", waited / finished),
            ("faults", faults),
        ] {
            sample.values.insert(name.into(), value);
        }
        Ok(sample)
    }

    /// Times are those of four sorts that finish; of three, as much longer. Keys: `pass`, mean size that was
    /// admitted in MiB; `admitted`, `too much`: time over that of the best size given; `faults CASE`: major
    /// faults.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let samples = &record.samples;
        study.report("pass", of_case(samples, ADMITTED, "pass"));
        let time = |case: &str| median(&of_case(samples, case, "seconds"));
        let fitting = GIVEN.iter().map(|(case, _)| *case).filter(|case| *case != TOO_MUCH);
        let best = fitting.filter_map(|case| Some((case, time(case)?)));
        let best = best.min_by(|one, other| one.1.total_cmp(&other.1)).map_or("", |best| best.0);
        for (case, key) in [(ADMITTED, ADMITTED), (TOO_MUCH, "too much")] {
            study.report(key, ratios(samples, case, best, "seconds"));
            study.report(&format!("faults {key}"), of_case(samples, case, "faults"));
        }
        let cases = GIVEN.iter().map(|(case, _)| *case).chain([ADMITTED]);
        let times = cases.map(|case| (case.to_owned(), of_case(samples, case, "seconds")));
        study.plots.push(Plot {
            title: "Time of four sorts that compete for memory".into(),
            x_label: String::new(),
            y_label: "seconds".into(),
            chart: Chart::Boxes(times.collect()),
        });
        study
    }
}

/// What one sort printed: seconds, passes, mean pass, seconds allocating, seconds waited, major faults; nothing if
/// it was killed.
fn sorted(file: &str) -> anyhow::Result<Option<[f64; 6]>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    fs::remove_file(file).with_context(|| format!("cannot remove {file}"))?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Ok(numbers.try_into().ok())
}
