use std::collections::BTreeSet;

use super::*;
use crate::frame::experiment::{Experiment, Scale, Step, steps};
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
        .chain(["foreground seconds", "background seconds", "begin", "end", "right", "read"])
        .chain([
            "sequential seconds",
            "bench seconds",
            "pass",
            "faults",
            "calls",
            "call bytes",
            "waits",
            "rate 1",
            "rate 2",
            "rate 3",
        ])
        .map(str::to_owned)
        .collect();
    for age in ["fresh", "aged", "refreshed"] {
        values.extend(["random", "i-number"].map(|order| format!("{order} {age}")));
    }
    let courses = [
        "device",
        "background",
        "guest",
        "server",
        "guest resident",
        "host resident",
        "requests",
        "program calls",
        throttle::OPERATIONS,
    ];
    let courses: Vec<&str> = courses
        .into_iter()
        .chain(["waits", "wait histogram", "9 ours disk C", "9 ours disk D"])
        .chain(["10 paper", "10 paper activity", "10 paper loaded"])
        .chain(["10 ours", "10 ours activity", "10 ours loaded"])
        .collect();
    // With the hours that figure 10 shows.
    let times = [0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 5.0, 8.0, 12.0, 24.0, 28.0, 150.0];
    let course: Vec<(f64, f64)> = times.iter().map(|time| (*time, 2e6)).collect();
    let number = |name: &String| (name.clone(), if name == "end" { 20.0 } else { 2.0 });
    record.samples = steps(experiment, Scale { quick: true, repetitions: None })
        .into_iter()
        .map(|step| Sample {
            case: step.case,
            round: step.round,
            values: values.iter().map(number).collect(),
            series: courses.iter().map(|name| ((*name).to_owned(), course.clone())).collect(),
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
fn small_differences_are_measured_back_and_forth() {
    let all = all();
    let overhead = all.iter().find(|entry| entry.name == "discnice-table-8");
    let Some(Body::Measured(experiment)) = overhead.map(|entry| &entry.body) else {
        panic!("it is measured")
    };
    let steps = steps(*experiment, Scale { quick: true, repetitions: Some(2) });
    let (there, back) = steps.split_at(steps.len() / 2);
    let names = |step: &Step| step.case.clone();
    let back: Vec<String> = back.iter().rev().map(names).collect();
    assert_eq!(there.iter().map(names).collect::<Vec<_>>(), back);
    assert!(there.iter().all(|step| step.round == 0));
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
