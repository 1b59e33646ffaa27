use std::collections::BTreeSet;

use super::background::Background;
use super::*;
use crate::frame::facts::Facts;
use crate::frame::record::Settings;

const WHOLE: Scale = Scale { quick: false, repetitions: None };

fn record(samples: Vec<Sample>) -> Record {
    let settings = Settings { quick: true, evaluator: String::new(), disk: String::new() };
    let mut record = Record::new("x", String::new(), settings, Facts::default());
    record.samples = samples;
    record
}

fn sample(
    foreground: Foreground,
    beside: Option<(Background, Peer)>,
    waits: &[f64],
    megabytes: f64,
) -> Sample {
    let values = [("seconds", 1.0), ("background bytes", megabytes * 1e6)];
    Sample {
        case: Case { foreground, beside }.name(),
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        series: [("waits".to_owned(), waits.iter().map(|wait| (0.0, *wait)).collect())].into(),
        ..Sample::default()
    }
}

#[test]
fn every_case_is_found_by_its_name() {
    let all = Case::all(WHOLE);
    let names: BTreeSet<String> = all.iter().map(|case| case.name()).collect();
    assert_eq!(names.len(), all.len());
    for case in all {
        assert_eq!(Case::find(&case.name()).unwrap(), case);
    }
    assert!(Case::find("video beside nothing").is_err());
}

#[test]
fn slowdowns_are_against_the_same_foreground_alone() {
    let [rsync, restic] = [Background::ALL[0], Background::ALL[1]];
    let (read, video) = (Foreground::Sequential, Foreground::Video);
    let study = study::study(&record(vec![
        sample(read, None, &[2.0], 0.0),
        sample(video, None, &[0.01, 0.02], 0.0),
        sample(read, Some((rsync, Peer::Plain)), &[8.0], 30.0),
        sample(read, Some((rsync, Peer::Polite)), &[2.2], 1.0),
        // At the same cost, nothing gives restic more.
        sample(read, Some((restic, Peer::Plain)), &[5.0], 9.0),
        sample(read, Some((restic, Peer::Polite)), &[5.0], 3.0),
        sample(video, Some((rsync, Peer::Polite)), &[0.5, 0.01, 0.04, 0.02, 0.06], 1.0),
    ]));
    assert_eq!(study.values["sequential read"], [1.1, 2.5]);
    assert_eq!(study.values["sequential read, worst"], [2.5]);
    assert_eq!(study.values["sequential read, front"], [0.5]);
    assert_eq!(study.values["video, late"], [25.0]);
    assert!(study.values["video, front"].is_empty(), "nothing to compare it with");
    assert!(!study.values.contains_key("syncs"));
    assert_eq!(study.plots.len(), 4);
}
