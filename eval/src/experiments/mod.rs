//! The list of all tables and figures.
//!
//! To add an experiment: see `frame/experiment.rs`. An entry whose part of the product is missing
//! says so; its paper file is there already.

mod aging;
mod contention;
mod contention_study;
mod file_order;
mod overhead;
mod peer;
mod prediction;
mod program;
mod throttle;

use crate::frame::experiment::{Body, Entry};
use aging::Aging;
use contention::{Contention, Foreground};
use file_order::FileOrder;
use overhead::Overhead;
use peer::Peer;
use prediction::Prediction;
use program::Program;
use throttle::Throttle;

/// Peers that need no part of the product: DiscNice tables 1 and 2, and what else a user could try.
const PEERS: &[Peer] = &[
    Peer::Alone,
    Peer::Plain,
    Peer::Nice,
    Peer::Idle("none"),
    Peer::Idle("mq-deadline"),
    Peer::Idle("bfq"),
    Peer::OwnLimit(1),
    Peer::OwnLimit(5),
    Peer::Cgroup(1),
    Peer::Cgroup(5),
];

/// DiscNice tables 9 and 10.
const CONTROLLED: &[Peer] = &[
    Peer::Alone,
    Peer::Discnice(1),
    Peer::Discnice(3),
    Peer::Discnice(5),
    Peer::Polite,
    Peer::OwnLimit(1),
    Peer::Nice,
    Peer::Plain,
];

const MEGABYTE: u64 = 1_000_000;

static TABLE_1: Contention = Contention { foreground: Foreground::Sequential, peers: PEERS };
static TABLE_2: Contention = Contention { foreground: Foreground::Tar, peers: PEERS };
static TABLE_9: Contention = Contention { foreground: Foreground::Sequential, peers: CONTROLLED };
static TABLE_10: Contention = Contention { foreground: Foreground::Tar, peers: CONTROLLED };
static TABLE_4: Prediction = Prediction {
    programs: &[
        Program::Sequential,
        Program::Stride,
        Program::Random,
        Program::Create,
        Program::RegionWrite,
        Program::CreateDelete,
    ],
};
static TABLE_7: Prediction = Prediction { programs: &[Program::Tar, Program::Make, Program::Grep] };
static TABLE_8: Overhead = Overhead { programs: &[Program::Tar, Program::Make, Program::Grep] };
static FIGURE_11: Throttle = Throttle {
    programs: &[
        (Program::Sequential, 5 * MEGABYTE),
        (Program::Random, 5 * MEGABYTE),
        (Program::Stride, 5 * MEGABYTE),
        (Program::Create, 5 * MEGABYTE),
    ],
};
static FIGURE_13: Throttle = Throttle {
    programs: &[
        (Program::Grep, 3 * MEGABYTE),
        (Program::Tar, 5 * MEGABYTE),
        (Program::Make, MEGABYTE / 2),
    ],
};

const SEQUENTIAL_AND_TAR: &[&str] = &["discnice-table-1", "discnice-table-2"];
const ALL_CONTENTION: &[&str] =
    &["discnice-table-1", "discnice-table-2", "discnice-table-9", "discnice-table-10"];

const MODULES: &str = "the product cannot switch its modules (cache detector, predictors) singly";
const DELAYED: &str = "the product does not report when it paced writes (discnice run --report)";
const WINDOWS: &str = "rate windows with classes (crates policy and policyd)";
const GUEST: &str = "guest memory policing (crate policyd)";
const NETWORK: &str = "network limits (discnice run --net)";
const MANNERS: &str = "progress-based regulation (crate manners)";
const FCCD: &str = "the file-cache content detector (crate graybox, discnice order --cached)";
const MAC: &str = "memory-based admission control (crate graybox, discnice admit)";

macro_rules! entry {
    ($name:literal, $body:expr) => {
        Entry {
            name: $name,
            paper: include_str!(concat!("../../paper/", $name, ".toml")),
            body: $body,
        }
    };
}

/// Every table and figure, in the order of the papers.
#[must_use]
pub fn all() -> Vec<Entry> {
    [discnice(), rate_windows(), ms_manners(), gray_box()].into_iter().flatten().collect()
}

fn discnice() -> Vec<Entry> {
    use contention_study::{cpu, pareto, rates};
    vec![
        entry!("discnice-table-1", Body::Measured(&TABLE_1)),
        entry!("discnice-table-2", Body::Measured(&TABLE_2)),
        entry!("discnice-figure-1", Body::View { of: SEQUENTIAL_AND_TAR, study: rates }),
        entry!("discnice-figure-2", Body::View { of: SEQUENTIAL_AND_TAR, study: cpu }),
        entry!("discnice-table-4", Body::Measured(&TABLE_4)),
        entry!("discnice-figure-11", Body::Measured(&FIGURE_11)),
        entry!("discnice-figure-12", Body::Missing(MODULES)),
        entry!("discnice-table-6", Body::Missing(MODULES)),
        entry!("discnice-table-7", Body::Measured(&TABLE_7)),
        entry!("discnice-figure-13", Body::Measured(&FIGURE_13)),
        entry!("discnice-figure-14", Body::Missing(DELAYED)),
        entry!("discnice-table-8", Body::Measured(&TABLE_8)),
        entry!("discnice-table-9", Body::Measured(&TABLE_9)),
        entry!("discnice-table-10", Body::Measured(&TABLE_10)),
        entry!("pareto", Body::View { of: ALL_CONTENTION, study: pareto }),
    ]
}

fn rate_windows() -> Vec<Entry> {
    vec![
        entry!("rate-windows-figure-1", Body::Missing(GUEST)),
        entry!("rate-windows-figure-4", Body::Missing(WINDOWS)),
        entry!("rate-windows-figure-5", Body::Missing(WINDOWS)),
        entry!("rate-windows-figure-6", Body::Missing(WINDOWS)),
        entry!("rate-windows-figure-7", Body::Missing(WINDOWS)),
        entry!("rate-windows-figure-8", Body::Missing(WINDOWS)),
        entry!("rate-windows-figure-9", Body::Missing(NETWORK)),
        entry!("rate-windows-figure-10", Body::Missing(NETWORK)),
        entry!("rate-windows-table-1", Body::Missing(WINDOWS)),
    ]
}

fn ms_manners() -> Vec<Entry> {
    vec![
        entry!("ms-manners-figure-3", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-4", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-5", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-6", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-7", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-8", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-9", Body::Missing(MANNERS)),
        entry!("ms-manners-figure-10", Body::Missing(MANNERS)),
    ]
}

fn gray_box() -> Vec<Entry> {
    vec![
        entry!("gray-box-figure-1", Body::Missing(FCCD)),
        entry!("gray-box-figure-2", Body::Missing(FCCD)),
        entry!("gray-box-figure-3", Body::Missing(FCCD)),
        entry!("gray-box-figure-4", Body::Missing(FCCD)),
        entry!("gray-box-figure-5", Body::Measured(&FileOrder)),
        entry!("gray-box-figure-6", Body::Measured(&Aging)),
        entry!("gray-box-figure-7", Body::Missing(MAC)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::frame::experiment::{Experiment, Scale, steps};
    use crate::frame::facts::Facts;
    use crate::frame::paper::Paper;
    use crate::frame::record::{Record, Sample, Settings};
    use crate::frame::study::Study;

    /// A record as the experiment would make it, with every value that any experiment takes.
    fn record(name: &str, experiment: &dyn Experiment) -> Record {
        let settings = Settings { quick: true, evaluator: String::new(), disk: String::new() };
        let mut record = Record::new(name, String::new(), settings, Facts::default());
        let mut values: Vec<String> = ["seconds", "device bytes", "background bytes"]
            .into_iter()
            .chain(["own cpu seconds", "system cpu seconds", "rate", "peak", "actual", "predicted"])
            .map(str::to_owned)
            .collect();
        for age in ["fresh", "aged", "refreshed"] {
            values.extend(["random", "i-number"].map(|order| format!("{order} {age}")));
        }
        record.samples = steps(experiment, Scale { quick: true })
            .into_iter()
            .map(|step| Sample {
                case: step.case,
                round: step.round,
                values: values.iter().map(|value| (value.clone(), 2.0)).collect(),
                ..Sample::default()
            })
            .collect();
        record
    }

    fn study(all: &[Entry], entry: &Entry) -> Option<Study> {
        match &entry.body {
            Body::Missing(_) => None,
            Body::Measured(experiment) => Some(experiment.study(&record(entry.name, *experiment))),
            Body::View { of, study } => {
                let records = of.iter().map(|name| {
                    let other = all.iter().find(|other| other.name == *name);
                    match other.map(|other| &other.body) {
                        Some(Body::Measured(experiment)) => record(name, *experiment),
                        _ => panic!("{} shows {name}, which is not measured", entry.name),
                    }
                });
                Some(study(&records.collect::<Vec<_>>()))
            }
        }
    }

    #[test]
    fn every_number_of_a_paper_file_is_studied() {
        let all = all();
        for entry in &all {
            let paper = Paper::parse(entry.paper).expect(entry.name);
            let Some(study) = study(&all, entry) else { continue };
            assert!(!paper.value.is_empty(), "{} compares nothing", entry.name);
            for value in &paper.value {
                let numbers = study.values.get(&value.key);
                assert!(
                    numbers.is_some_and(|numbers| !numbers.is_empty()),
                    "{}: no study of {}",
                    entry.name,
                    value.key
                );
            }
        }
    }

    #[test]
    fn all_items_of_the_papers_are_listed_once() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), all.len());
        let count = |begin: &str| names.iter().filter(|name| name.starts_with(begin)).count();
        assert_eq!(count("discnice-"), 8 + 6);
        assert_eq!(count("rate-windows-"), 8 + 1);
        assert_eq!(count("ms-manners-"), 8);
        assert_eq!(count("gray-box-"), 7);
    }
}
