//! `discnice trace`: the calls of a class, as they are made.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use discnice_ledger::trace::{Reader, Record, Why};
use discnice_sys::time;
use discnice_units::{Bytes, Moment, Nanos};
use serde::Serialize;

use super::trace_target::TraceTarget;
use crate::ending;
use crate::output::{self, Lines, say, tell};
use crate::values;

const EXAMPLES: &str = "\
Examples:
  discnice trace nightly                     each call of class nightly, until Ctrl-C
  discnice trace 4711                        the calls of process 4711 alone
  discnice trace --count --for 10s nightly   calls by the reason for which they went on, over 10 s";

/// How often the ring is read; it holds more than members write in that time.
const LOOK: Duration = Duration::from_millis(5);
/// Members record for so long after the last renewal, so that a killed trace ends by itself.
const LEASE: Nanos = Nanos::from_millis(2_000);
const RENEWED: Duration = Duration::from_millis(500);
/// A record that is not whole after so many looks belongs to a member that was killed.
const PATIENCE: u32 = 20;
/// A class without a process for so long has ended.
const ENDED: Duration = Duration::from_millis(1_000);

/// Show each call of a class or process: its predicted cost, its charge, how long it was held, and why it went on
///
/// For programs that are held from outside, each look at the kernel's account is shown instead. Calls that involve neither a
/// disk nor a limited network, such as those on pipes, are shown only where DiscNice examines them. Programs run no slower
/// for this while no trace runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Trace {
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Only count calls, bytes and time held for each reason
    #[arg(long)]
    count: bool,
    /// End after this time, such as 10s [default: when no process is left, or on Ctrl-C]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = values::duration)]
    time: Option<Duration>,
    /// What to trace
    #[arg(value_name = "CLASS|PID", allow_negative_numbers = true, value_parser = NonEmptyStringValueParser::new())]
    subject: String,
}

impl Trace {
    /// Shows calls until the time is over, the subject has ended, or a signal asks to end: what was counted is shown then.
    ///
    /// # Errors
    /// There is no such class or process; standard output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let target = TraceTarget::of(&self.subject)?;
        let mut shown = Shown::new(&self);
        let mut reader = target.found.class.trace().reader();
        let (begun, mut renewed, mut seen_running) = (Instant::now(), None, Instant::now());
        let asked_to_end = ending::asked_to_end()?;
        shown.begin()?;
        let mut looks = 0_u32;
        loop {
            if renewed.is_none_or(|at: Instant| at.elapsed() >= RENEWED) {
                target.found.class.trace_until(time::now().plus(LEASE));
                renewed = Some(Instant::now());
                if target.runs() {
                    seen_running = Instant::now();
                }
            }
            looks = looks.wrapping_add(1);
            shown.read(&mut reader, &target, !looks.is_multiple_of(PATIENCE))?;
            let is_over = asked_to_end.load(Ordering::Relaxed)
                || self.time.is_some_and(|time| begun.elapsed() >= time);
            if is_over || seen_running.elapsed() > ENDED + RENEWED {
                break;
            }
            thread::sleep(LOOK);
        }
        shown.read(&mut reader, &target, false)?;
        shown.end(reader.lost())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is shown of the records.
struct Shown {
    json: bool,
    counts: Option<BTreeMap<&'static str, Count>>,
    begun: Moment,
}

/// Calls that went on for one reason.
#[derive(Default, Serialize)]
struct Count {
    calls: u64,
    charged: u64,
    held_seconds: f64,
}

/// A record for machines.
#[derive(Serialize)]
struct Call {
    at_seconds: f64,
    process: u32,
    thread: u32,
    call: String,
    first: Option<i32>,
    result: i64,
    predicted: u64,
    charged: u64,
    took_seconds: f64,
    held_seconds: f64,
    why: &'static str,
}

impl Shown {
    fn new(trace: &Trace) -> Self {
        Self { json: trace.json, counts: trace.count.then(BTreeMap::new), begun: time::now() }
    }

    fn begin(&self) -> anyhow::Result<()> {
        if !self.json && self.counts.is_none() {
            say!(
                "{:>10} {:>8} {:>8}  {:<24} {:>14} {:>9} {:>10} {:>10}  why it went on",
                "seconds",
                "process",
                "thread",
                "call",
                "result",
                "held",
                "predicted",
                "charged"
            )?;
        }
        Ok(())
    }

    /// Shows what has come.
    fn read(
        &mut self,
        reader: &mut Reader<'_>,
        target: &TraceTarget,
        patient: bool,
    ) -> anyhow::Result<()> {
        let (mut lines, mut objects) = (Lines::default(), Vec::new());
        reader.read(patient, |record| {
            if !target.concerns(&record) {
            } else if let Some(counts) = &mut self.counts {
                let count = counts.entry(words(record.why).0).or_default();
                count.calls += 1;
                count.charged += record.charged;
                count.held_seconds += record.waited.as_secs_f64();
            } else if self.json {
                objects.push(self.object(&record));
            } else {
                self.line(&mut lines, &record);
            }
        });
        for object in objects {
            output::json(&serde_json::to_string(&object)?)?;
        }
        lines.say()?;
        Ok(())
    }

    fn object(&self, record: &Record) -> Call {
        Call {
            at_seconds: record.at.since(self.begun).as_secs_f64(),
            process: record.process,
            thread: record.thread,
            call: name(record),
            first: record.first,
            result: record.result,
            predicted: record.predicted,
            charged: record.charged,
            took_seconds: record.took.as_secs_f64(),
            held_seconds: record.waited.as_secs_f64(),
            why: words(record.why).0,
        }
    }

    fn line(&self, lines: &mut Lines, record: &Record) {
        let first = record.first.map_or(String::new(), |first| format!("({first})"));
        let bytes =
            |bytes: u64| if bytes == 0 { "-".into() } else { Bytes::new(bytes).to_string() };
        let held = if record.waited == Nanos(0) { "-".into() } else { record.waited.to_string() };
        lines.push(format_args!(
            "{:>10.6} {:>8} {:>8}  {:<24} {:>14} {:>9} {:>10} {:>10}  {}",
            record.at.since(self.begun).as_secs_f64(),
            record.process,
            record.thread,
            format!("{}{first}", name(record)),
            result(record.result),
            held,
            bytes(record.predicted),
            bytes(record.charged),
            words(record.why).1,
        ));
    }

    /// Shows the counts, and what was lost.
    fn end(self, lost: u64) -> anyhow::Result<()> {
        if let Some(counts) = self.counts {
            if self.json {
                output::json(&serde_json::to_string_pretty(&counts)?)?;
            } else {
                table(&counts).say()?;
            }
        }
        if lost > 0 {
            tell!("discnice: {lost} calls came faster than they could be shown; --count is faster");
        }
        Ok(())
    }
}

fn table(counts: &BTreeMap<&'static str, Count>) -> Lines {
    let mut lines = Lines::default();
    lines.push(format_args!("{:>10} {:>10} {:>9}  why they went on", "calls", "charged", "held"));
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(count.calls));
    for (key, count) in sorted {
        let sentence = Why::ALL.into_iter().map(words).find(|(one, _)| one == key);
        lines.push(format_args!(
            "{:>10} {:>10} {:>9}  {}",
            count.calls,
            Bytes::new(count.charged).to_string(),
            Nanos((count.held_seconds * 1e9) as u64).to_string(),
            sentence.map_or(*key, |(_, sentence)| sentence),
        ));
    }
    lines
}

/// A result for people: pointers in hexadecimal.
fn result(value: i64) -> String {
    const POINTERS: std::ops::RangeInclusive<i64> = 1 << 44..=1 << 56;
    if POINTERS.contains(&value) { format!("{value:#x}") } else { value.to_string() }
}

/// The call's name, which any program of this user may have written.
fn name(record: &Record) -> String {
    let length = record.name.iter().position(|byte| *byte == 0).unwrap_or(record.name.len());
    String::from_utf8_lossy(&record.name[..length]).into_owned()
}

/// Returns a reason for machines, and for people.
pub(super) fn words(why: Why) -> (&'static str, &'static str) {
    match why {
        Why::Unexamined => ("expected-free", "expected to cost nothing"),
        Why::Unlimited => ("unlimited", "no limit was in force"),
        Why::Elsewhere => ("elsewhere", "cannot reach a disk"),
        Why::Cached => ("cached", "expected in the page cache"),
        Why::Dirty => ("dirty", "writes pages that are dirty already"),
        Why::PaidAhead => ("paid-ahead", "read ahead and paid for"),
        Why::NothingOwed => ("nothing-owed", "the class owed nothing; charged afterwards"),
        Why::Reserved => ("reserved", "its predicted cost was reserved"),
        Why::Slices => ("slices", "read ahead in slices, each of them reserved"),
        Why::Deletes => ("deletes", "its thread deletes what it writes"),
        Why::Account => ("account", "charged from outside, by its account"),
        Why::Least => ("at-least", "waited for others, until its least rate let it go on"),
        Why::Turn => ("turn", "took its turn in the class's network traffic"),
    }
}
