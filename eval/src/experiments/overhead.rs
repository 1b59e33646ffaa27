//! Time of programs under DiscNice without a limit: table 8.

use discnice_plot::{Chart, Plot};

use super::program::{self, Program};
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case, ratios};
use crate::lab::Lab;
use crate::lab::job::Job;

/// Each program with and without DiscNice.
pub struct Overhead {
    /// Which.
    pub programs: &'static [Program],
}

const WITH: &str = " with discnice";

/// How much a program gets to do: tar as much as in the paper always, as half a percent of less than a second
/// cannot be told.
const fn scale_of(program: Program, scale: Scale) -> Scale {
    Scale { quick: scale.quick && !matches!(program, Program::Tar), ..scale }
}

impl Experiment for Overhead {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = self.programs.iter().flat_map(|program| {
            let rate = if *program == Program::Tar { 40e6 } else { 3e6 };
            let seconds = program.bytes(scale_of(*program, scale)) as f64 / rate;
            let name = program.name();
            [(name.to_owned(), seconds), (format!("{name}{WITH}"), seconds)]
        });
        (cases.collect(), scale.rounds(7, 5))
    }

    fn alternates(&self) -> bool {
        true
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        self.find(case).ok()?.lack(lab)
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        let prepare = |program: &Program| program.prepare(lab, scale_of(*program, scale));
        self.programs.iter().try_for_each(prepare)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let program = self.find(&step.case)?;
        program.begin(lab)?;
        let mut command = program.command(lab, scale_of(program, step.scale));
        if step.case.ends_with(WITH) {
            command = lab.limited(&["--disk", "unlimited"], &command)?;
        }
        let job = Job::start(&mut command)?;
        let commands = vec![job.words().to_owned()];
        let values = [("seconds".to_owned(), job.finish()?)].into();
        let (case, round) = (step.case.clone(), step.round);
        Ok(Sample { case, round, commands, values, ..Sample::default() })
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let mut boxes = Vec::new();
        for program in self.programs {
            let name = program.name();
            let with = format!("{name}{WITH}");
            for case in [name, &with] {
                let seconds = of_case(&record.samples, case, "seconds");
                study.report(&format!("seconds {case}"), seconds.clone());
                boxes.push((case.to_owned(), seconds));
            }
            let ratios = ratios(&record.samples, &with, name, "seconds");
            let percent = ratios.into_iter().map(|ratio| 100.0 * (ratio - 1.0)).collect();
            study.report(&format!("overhead {name}"), percent);
        }
        study.plots.push(Plot {
            title: "Time with and without DiscNice".into(),
            x_label: String::new(),
            y_label: "seconds".into(),
            chart: Chart::Boxes(boxes),
        });
        study
    }
}

impl Overhead {
    fn find(&self, case: &str) -> anyhow::Result<Program> {
        program::find(self.programs, case.strip_suffix(WITH).unwrap_or(case))
    }
}
