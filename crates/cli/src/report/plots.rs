//! The plots of a report: rates over time as Rate Windows, figure 7, and sleep times as figure 6.

use discnice_ledger::policy::Resource;
use discnice_ledger::waits::{self, BUCKETS, Counts};
use discnice_plot::{Chart, Plot, Series};
use discnice_units::Bytes;

use super::course::Sample;
use super::record::JobRecord;

/// A line is drawn through at most so many points.
const POINTS: f64 = 320.0;
/// Rates are averages over at least so many seconds, as the paper's, once a job takes long enough.
const SMOOTH: f64 = 1.0;
/// Buckets of the histogram in which the time doubles.
const BUCKETS_OF_A_DOUBLING: usize = 4;
const MEBIBYTE: f64 = 1_048_576.0;

/// All plots of a report.
pub fn all(record: &JobRecord) -> Vec<Plot> {
    vec![rates(record), sleeps(&record.counts)]
}

fn rates(record: &JobRecord) -> Plot {
    let width = (record.seconds / POINTS).max(SMOOTH.min(record.seconds / 20.0));
    let spans = spans(&record.samples, width);
    let line = |name: &str, moved: fn(&Sample) -> u64| {
        let point = |(from, sum): &(f64, Sample)| point(*from, sum, Bytes::new(moved(sum)));
        Series { name: name.into(), points: spans.iter().map(point).collect() }
    };
    let mut series = vec![
        line("read", |sample| sample.read_bytes),
        line("written", |sample| sample.written_bytes),
        line("all disk traffic", |sample| sample.read_bytes + sample.written_bytes),
    ];
    let (points, level) = threshold(&spans, record.limit(Resource::Total));
    if !points.is_empty() {
        series.push(Series { name: "threshold".into(), points });
    }
    let rates = series.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (bytes, y_label) = unit(&RATES, rates.chain(level).fold(0.0, f64::max));
    let (seconds, x_label) = unit(&TIMES, record.seconds);
    let scaled = |(x, y): &mut (f64, f64)| (*x, *y) = (*x / seconds, *y / bytes);
    series.iter_mut().flat_map(|line| &mut line.points).for_each(scaled);
    Plot {
        title: "Disk traffic".into(),
        x_label: format!("{x_label} since the start"),
        y_label: y_label.into(),
        chart: Chart::Lines { series, threshold: level.map(|level| level / bytes) },
    }
}

/// Units of a rate, and the least number of bytes a second for which each is taken.
const RATES: [(f64, f64, &str); 4] = [
    (0.0, 1.0, "B/s"),
    (102.4, 1024.0, "KiB/s"),
    (104_857.6, MEBIBYTE, "MiB/s"),
    (1024.0 * MEBIBYTE, 1024.0 * MEBIBYTE, "GiB/s"),
];

/// Units of a time, and the least number of seconds for which each is taken.
const TIMES: [(f64, f64, &str); 5] = [
    (0.0, 1e-3, "milliseconds"),
    (1.0, 1.0, "seconds"),
    (900.0, 60.0, "minutes"),
    (36_000.0, 3600.0, "hours"),
    (864_000.0, 86_400.0, "days"),
];

/// The unit in which numbers up to `most` are easy to read: its size and its name.
fn unit(units: &[(f64, f64, &'static str)], most: f64) -> (f64, &'static str) {
    let fitting = units.iter().rev().find(|(from, ..)| most >= *from);
    fitting.map_or((1.0, ""), |(_, size, name)| (*size, name))
}

/// The threshold in bytes a second: its height where it was in force and the same all the time, else a line, with gaps where
/// none was in force.
fn threshold(spans: &[(f64, Sample)], at_end: Option<u64>) -> (Vec<(f64, f64)>, Option<f64>) {
    if spans.iter().all(|(_, sum)| sum.limit_total == at_end) {
        return (Vec::new(), at_end.map(|limit| limit as f64));
    }
    let ends = |(from, sum): &(f64, Sample)| {
        let height = sum.limit_total.map_or(f64::NAN, |limit| limit as f64);
        [(*from, height), (sum.seconds, height)]
    };
    let mut points: Vec<_> = spans.iter().flat_map(ends).collect();
    if points.iter().all(|(_, height)| height.is_nan()) {
        points.clear();
    }
    (points, None)
}

fn point(from: f64, sum: &Sample, moved: Bytes) -> (f64, f64) {
    let width = (sum.seconds - from).max(1e-3);
    ((from + sum.seconds) / 2.0, moved.get() as f64 / width)
}

/// Sums of neighbouring samples that cover at least `width` seconds, with the time at which each
/// begins. What is left at the end joins the last one: a short span would show as a spike.
fn spans(samples: &[Sample], width: f64) -> Vec<(f64, Sample)> {
    let mut spans: Vec<(f64, Sample)> = Vec::new();
    let mut begun = 0.0;
    let mut open: Option<Sample> = None;
    for sample in samples {
        let sum = open.map_or(*sample, |sum| sum.merged(*sample));
        if sum.seconds - begun >= width * 0.999 {
            spans.push((begun, sum));
            begun = sum.seconds;
            open = None;
        } else {
            open = Some(sum);
        }
    }
    match (spans.last_mut(), open) {
        (Some((_, last)), Some(rest)) => *last = last.merged(rest),
        (None, Some(rest)) => spans.push((0.0, rest)),
        _ => {}
    }
    spans
}

fn sleeps(counts: &Counts) -> Plot {
    let used = |bucket: &usize| counts[*bucket] > 0;
    let first = (0..BUCKETS).find(used).unwrap_or(0);
    let last = (0..BUCKETS).rfind(used).unwrap_or(0);
    let bar = |bucket: usize| {
        let named = bucket.is_multiple_of(BUCKETS_OF_A_DOUBLING) || bucket == first;
        let name = if named { duration(waits::begin(bucket).as_secs_f64()) } else { String::new() };
        (name, counts[bucket] as f64)
    };
    // Names are wide: the first bar's may be over the next doubling's.
    let mut bars: Vec<(String, f64)> =
        (first..=last.max(first + 7).min(BUCKETS - 1)).map(bar).collect();
    if first % BUCKETS_OF_A_DOUBLING > 1 && bars.len() > 16 {
        bars[0].0.clear();
    }
    Plot {
        title: "Sleep times".into(),
        x_label: "length of a sleep (each bar is a fourth of a doubling)".into(),
        y_label: "sleeps".into(),
        chart: Chart::Bars(bars),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 0.999 => format!("{s:.1} s"),
        s if s >= 0.01 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.1} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, bytes: u64) -> Sample {
        Sample {
            seconds,
            read_bytes: bytes,
            written_bytes: 0,
            metadata_operations: 0,
            sent_bytes: 0,
            received_bytes: 0,
            waits: 0,
            waited_seconds: 0.0,
            limit_total: None,
        }
    }

    #[test]
    fn spans_cover_everything_and_none_is_short() {
        let samples: Vec<Sample> = (1..=25).map(|n| sample(f64::from(n) / 10.0, 1)).collect();
        let spans = spans(&samples, 1.0);
        let shown: Vec<_> = spans.iter().map(|(from, sum)| (*from, sum.read_bytes)).collect();
        assert_eq!(shown, [(0.0, 10), (1.0, 15)]);
        assert_eq!(super::spans(&samples[..3], 1.0), [(0.0, samples[2].merged(sample(0.3, 2)))]);
        assert!(super::spans(&[], 1.0).is_empty());
    }

    #[test]
    fn a_threshold_is_drawn_where_it_was_in_force() {
        let sample = |seconds, limit_total| Sample { limit_total, ..sample(seconds, 0) };
        let span = |from, limit| (from, sample(from + 1.0, limit));
        let steady = [span(0.0, Some(5)), span(1.0, Some(5))];
        assert_eq!(threshold(&steady, Some(5)), (vec![], Some(5.0)));
        assert_eq!(threshold(&[span(0.0, None)], None), (vec![], None));
        let set_late = [span(0.0, None), span(1.0, Some(5))];
        let (line, level) = threshold(&set_late, Some(5));
        assert_eq!((&line[2..], level), (&[(1.0, 5.0), (2.0, 5.0)][..], None));
        assert!(line[..2].iter().all(|(_, height)| height.is_nan()), "a gap: {line:?}");
        assert_eq!(threshold(&[span(0.0, None)], Some(5)), (vec![], None), "never in force");
        let changed = [span(0.0, Some(9)), span(1.0, Some(5))];
        let line = [(0.0, 9.0), (1.0, 9.0), (1.0, 5.0), (2.0, 5.0)];
        assert_eq!(threshold(&changed, Some(5)), (line.to_vec(), None));
    }

    #[test]
    fn units_fit_what_is_drawn() {
        let of = |most| (unit(&RATES, most).1, unit(&TIMES, most).1);
        assert_eq!(of(0.0), ("B/s", "milliseconds"));
        assert_eq!(of(500.0), ("KiB/s", "seconds"));
        assert_eq!(of(5.0 * MEBIBYTE), ("MiB/s", "days"));
        assert_eq!(unit(&RATES, 3072.0 * MEBIBYTE), (1024.0 * MEBIBYTE, "GiB/s"));
        assert_eq!(unit(&TIMES, 86_400.0), (3600.0, "hours"));
        assert_eq!(unit(&TIMES, f64::NAN), (1.0, ""));
    }

    #[test]
    fn the_histogram_has_no_holes() {
        let mut counts = [0; BUCKETS];
        (counts[17], counts[40]) = (3, 5);
        let Chart::Bars(bars) = sleeps(&counts).chart else { panic!("no bars") };
        assert_eq!(bars.len(), 24);
        assert_eq!((bars[0].1, bars[23].1), (3.0, 5.0));
        assert_eq!(bars[3].0, duration(waits::begin(20).as_secs_f64()));
        assert_eq!(bars.iter().map(|bar| bar.1).sum::<f64>(), 8.0);
    }
}
