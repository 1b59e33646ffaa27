//! One table or figure: the numbers of a paper beside ours.

use anyhow::Context;
use discnice_plot::Plot;

use super::verdict::{self, Row, Verdict};
use crate::frame::experiment::{Body, Entry};
use crate::frame::paper::Paper;
use crate::frame::record::{Archive, Record};
use crate::frame::study::Study;

/// One table or figure, ready to be printed.
pub struct Page {
    /// Such as `discnice-table-1`.
    pub name: &'static str,
    /// The paper's side.
    pub paper: Paper,
    /// Our side.
    pub content: Content,
}

/// Our side of a table or figure.
pub enum Content {
    /// Nothing is there; why.
    Absent(String),
    /// It was measured.
    Measured(Measured),
}

/// What was measured.
pub struct Measured {
    /// Number by number.
    pub rows: Vec<Row>,
    /// The phenomenon as a whole.
    pub verdict: Verdict,
    /// Plots.
    pub plots: Vec<Plot>,
    /// What the reader must know: cases left out, rounds missing, settings.
    pub remarks: Vec<String>,
}

impl Page {
    /// Studies the records of `entry` that are in `archive`.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn new(entry: &Entry, archive: &Archive) -> anyhow::Result<Self> {
        let paper = Paper::parse(entry.paper).with_context(|| entry.name.to_owned())?;
        let content = match &entry.body {
            Body::Missing(reason) => Content::Absent(format!("not available: {reason}")),
            Body::Measured(experiment) => match archive.load(entry.name)? {
                Some(record) => {
                    measured(&paper, experiment.study(&record), std::slice::from_ref(&record))
                }
                None => Content::Absent(format!("not measured; run {}", entry.name)),
            },
            Body::View { of, study } => {
                let found: Vec<Option<Record>> =
                    of.iter().map(|name| archive.load(name)).collect::<Result<_, _>>()?;
                let records: Vec<Record> = found.into_iter().flatten().collect();
                match records.is_empty() {
                    true => Content::Absent(format!("not measured; run {}", of.join(" or "))),
                    false => measured(&paper, study(&records), &records),
                }
            }
        };
        Ok(Self { name: entry.name, paper, content })
    }

    /// `not available`, `holds`, …: one word or two for a list.
    #[must_use]
    pub fn verdict(&self) -> &str {
        match &self.content {
            Content::Absent(reason) => reason.split([':', ';']).next().unwrap_or(reason),
            Content::Measured(measured) => measured.verdict.word(),
        }
    }
}

fn measured(paper: &Paper, study: Study, records: &[Record]) -> Content {
    if records.iter().all(|record| record.samples.is_empty()) {
        return Content::Absent("not measured; its record has no samples".into());
    }
    let rows = verdict::rows(paper, &study);
    let mut remarks = Vec::new();
    for record in records {
        if !record.complete {
            remarks.push(format!("{} is not complete; run it again to resume", record.name));
        }
        remarks.extend(record.skipped.iter().map(|reason| format!("left out: {reason}")));
    }
    Content::Measured(Measured {
        verdict: verdict::whole(&rows),
        rows,
        plots: study.plots,
        remarks,
    })
}
