//! What follows from the samples: for each foreground one heat map and one plot of slowdown against throughput.

use discnice_plot::{Cell, Chart, Heat, Plot};

use super::background::Background;
use super::case::{Case, TREATMENTS, treatment};
use super::foreground::Foreground;
use crate::experiments::contention_study::beaten;
use crate::experiments::peer::Peer;
use crate::frame::record::{Record, Sample};
use crate::frame::study::{Study, median, quantile};

const MEGABYTE: f64 = 1e6;
/// A player that reads one piece ahead, and plays once it has the first, stops if a piece takes longer than it plays.
const DEADLINE: f64 = 0.05;

/// One cell.
struct Outcome {
    background: Background,
    peer: Peer,
    /// Of the foreground, against the same alone.
    slowdown: f64,
    /// What the background moved meanwhile, in MB/s.
    rate: f64,
    /// Waits beyond [`DEADLINE`], of 100.
    late: f64,
}

/// Keys, for each foreground: `FOREGROUND` and `FOREGROUND, worst` (slowdown beside every background that gives
/// way, and the largest of them), `FOREGROUND, front` (share of the backgrounds for which no other treatment gives
/// the background more at the same cost), and `video, late`.
pub fn study(record: &Record) -> Study {
    let mut study = Study::default();
    for foreground in Foreground::ALL {
        let cells = outcomes(&record.samples, foreground);
        let polite: Vec<&Outcome> = cells.iter().filter(|one| one.peer == Peer::Polite).collect();
        if polite.is_empty() {
            continue;
        }
        let name = foreground.name();
        let slowdowns: Vec<f64> = polite.iter().map(|one| one.slowdown).collect();
        study.report(&format!("{name}, worst"), quantile(&slowdowns, 1.0).into_iter().collect());
        study.report(name, slowdowns);
        let fronts: Vec<bool> = polite.iter().filter_map(|one| is_on_front(one, &cells)).collect();
        let share = fronts.iter().filter(|front| **front).count() as f64 / fronts.len() as f64;
        study.report(
            &format!("{name}, front"),
            Some(share).filter(|share| share.is_finite()).into_iter().collect(),
        );
        if foreground == Foreground::Video {
            let late: Vec<f64> = polite.iter().map(|one| one.late).collect();
            study.report("video, late", quantile(&late, 1.0).into_iter().collect());
        }
        study.plots.extend([map(foreground, &cells), front(foreground, &cells)]);
    }
    study
}

/// All cells of a foreground that were measured.
fn outcomes(samples: &[Sample], foreground: Foreground) -> Vec<Outcome> {
    let alone = rounds(samples, Case { foreground, beside: None });
    let Some(alone) = measure(foreground, &alone) else { return Vec::new() };
    let mut cells = Vec::new();
    for background in Background::ALL {
        for peer in TREATMENTS.iter().copied() {
            let rounds = rounds(samples, Case { foreground, beside: Some((background, peer)) });
            let Some(beside) = measure(foreground, &rounds) else { continue };
            let of = |value: &str| -> f64 {
                rounds.iter().filter_map(|round| round.values.get(value)).sum()
            };
            let rate = of("background bytes") / of("seconds") / MEGABYTE;
            let late = 100.0 * share_late(&rounds);
            cells.push(Outcome { background, peer, slowdown: beside / alone, rate, late });
        }
    }
    cells
}

/// The rounds of a case.
fn rounds(samples: &[Sample], case: Case) -> Vec<&Sample> {
    let name = case.name();
    samples.iter().filter(|sample| sample.case == name).collect()
}

/// What counts of a case, in seconds: of requests the 99th percentile of all rounds together, else the median of the
/// rounds.
fn measure(foreground: Foreground, rounds: &[&Sample]) -> Option<f64> {
    let waits = rounds.iter().filter_map(|round| round.series.get("waits")).flatten();
    let waits: Vec<f64> = waits.map(|(_, wait)| *wait).collect();
    if foreground.is_paced() { quantile(&waits, 0.99) } else { median(&waits) }
}

/// The share of the pieces behind the first that miss their deadline.
fn share_late(rounds: &[&Sample]) -> f64 {
    let pieces = rounds.iter().filter_map(|round| round.series.get("waits")?.get(1..));
    let (mut count, mut late) = (0_u32, 0_u32);
    for (_, wait) in pieces.flatten() {
        count += 1;
        late += u32::from(*wait > DEADLINE);
    }
    f64::from(late) / f64::from(count.max(1))
}

/// Whether no other treatment of the same background gives it more at the same cost; `None` if none was measured.
fn is_on_front(polite: &Outcome, cells: &[Outcome]) -> Option<bool> {
    let is_other = |one: &&Outcome| one.background == polite.background && one.peer != polite.peer;
    let mut others = cells.iter().filter(is_other).map(|one| (one.rate, one.slowdown)).peekable();
    others.peek()?;
    Some(!beaten((polite.rate, polite.slowdown), others))
}

fn map(foreground: Foreground, cells: &[Outcome]) -> Plot {
    let measured = |peer: &&Peer| cells.iter().any(|one| one.peer == **peer);
    let treatments: Vec<Peer> = TREATMENTS.iter().filter(measured).copied().collect();
    let row = |background: Background| {
        let cell = |peer: &Peer| {
            let one = cells.iter().find(|one| one.background == background && one.peer == *peer)?;
            Some(Cell { ratio: one.slowdown, note: format!("{:.1} MB/s", one.rate) })
        };
        (background.name().to_owned(), treatments.iter().map(cell).collect::<Vec<_>>())
    };
    let rows = Background::ALL.into_iter().map(row);
    let what = if foreground.is_paced() { "99th percentile" } else { "time" };
    Plot {
        title: format!("{}: {what} against alone, and the background's rate", foreground.name()),
        x_label: String::new(),
        y_label: String::new(),
        chart: Chart::Heat(Heat {
            columns: treatments.iter().map(|peer| treatment(*peer)).collect(),
            rows: rows.filter(|(_, cells)| cells.iter().any(Option::is_some)).collect(),
        }),
    }
}

/// Medians over all backgrounds, one point for each treatment.
fn front(foreground: Foreground, cells: &[Outcome]) -> Plot {
    let point = |peer: &Peer| {
        let of = |value: fn(&Outcome) -> f64| {
            median(&cells.iter().filter(|one| one.peer == *peer).map(value).collect::<Vec<f64>>())
        };
        Some((treatment(*peer), of(|one| one.rate)?, of(|one| one.slowdown)?))
    };
    Plot {
        title: format!("{}: medians over all backgrounds", foreground.name()),
        x_label: "background throughput, MB/s".into(),
        y_label: "foreground slowdown, times".into(),
        chart: Chart::Points(TREATMENTS.iter().filter_map(point).collect()),
    }
}
