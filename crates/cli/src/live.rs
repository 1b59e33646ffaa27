//! The line of `run --progress`: how fast a job is, how far, and what it waits for.
//!
//! It is shown on a terminal only, while the job is in its foreground, and never longer than the terminal is wide: what does
//! not fit is left out, the least important first.

use std::time::{Duration, Instant};

use discnice_ledger::Class;
use discnice_ledger::policy::{Resource, Resources};
use discnice_sys::time;
use discnice_units::{Bytes, Nanos, Rate};
use unicode_width::UnicodeWidthStr;

use crate::binding::Binding;
use crate::counters::Counters;
use crate::family::Family;
use crate::output;
use crate::reading::{Reading, largest};
use crate::report::Waited;
use crate::schedule::Job;

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(500);
/// The speed in a file is known after this.
const KNOWN: Duration = Duration::from_secs(1);
/// Waits of less time are not shown.
const WORTH: f64 = 0.1;

/// The line of one job.
#[derive(Debug)]
pub struct Live {
    begun: Instant,
    next: Instant,
    /// What moved is of the network, as that alone is limited.
    of_network: bool,
    /// What its classes had moved and waited before.
    before: Counters,
    /// Where its file was, when that was seen first.
    first: Option<(Reading, Instant)>,
}

/// What the line shows.
#[derive(Debug, Default)]
struct State {
    rate: String,
    limit: Option<Rate>,
    /// The limit is each child's.
    each: bool,
    moved: u64,
    /// Seconds by the clock.
    held: f64,
    /// How much of all is done, and how long the rest takes.
    done: Option<(f64, Option<Duration>)>,
    /// What is waited for, and what of others is most in the way.
    waits: Option<(String, Option<String>)>,
}

impl Live {
    /// Begins with what its classes have moved so far.
    pub fn begin(family: &Family) -> Self {
        let (class, now) = (family.own().class, Instant::now());
        let limited = class.limits().limited();
        let is_empty = |set: Resources| limited.within(set).is_empty();
        let of_network = is_empty(Resources::DISK) && !is_empty(Resources::NETWORK);
        let before = family.counters();
        Self { begun: now, next: now + EVERY, of_network, before, first: None }
    }

    /// Shows how the job is now, if it is time.
    pub fn look(&mut self, job: &Job, family: &Family, waited: &Waited) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let Some(columns) = output::columns_in_front() else { return };
        output::show_live(&self.state(job, family, waited, now).text(columns.saturating_sub(1)));
    }

    fn state(&mut self, job: &Job, family: &Family, waited: &Waited, now: Instant) -> State {
        let ways = ways(self.of_network);
        let clock = time::now();
        let of = |class: &Class| {
            ways.map(|one| class.meter(one).recent().rate(clock)).iter().sum::<u64>()
        };
        let rate = Rate::per_second(family.classes().map(|found| of(found.class)).sum());
        let since = family.counters().since(&self.before);
        let threads = since.waited + waited.stood();
        let elapsed = now.duration_since(self.begun).as_secs_f64();
        let held = waited.parts(threads, elapsed).iter().map(|part| part.seconds).sum();
        let waits = waited.present().map(|reason| {
            let others = matches!(reason, Binding::Others(_)).then(|| waited.most_in_the_way());
            (reason.state(), others.flatten())
        });
        State {
            rate: rate.to_string(),
            limit: self.limit(job.found.class),
            each: job.found.class.is_per_child(),
            moved: ways.map(|one| since.total(one)).iter().sum(),
            held,
            done: self.done(job, now, rate),
            waits,
        }
    }

    /// The limit that is in force now.
    fn limit(&self, class: &Class) -> Option<Rate> {
        let limits = class.limits();
        let whole = if self.of_network { Resource::Net } else { Resource::Total };
        let ways = ways(self.of_network);
        let is_free = !class.limited().contains(whole) && limits.rate(whole) != Rate::UNLIMITED;
        let all = ways.into_iter().chain([whole]).map(|one| limits.rate(one));
        all.min().filter(|rate| !rate.is_unlimited() && !is_free)
    }

    /// How much is done: of the file that it reads, else of the bytes that it may move.
    fn done(&mut self, job: &Job, now: Instant, rate: Rate) -> Option<(f64, Option<Duration>)> {
        let reading = largest(&job.processes());
        let in_file = reading.and_then(|reading| self.done_of(reading, now));
        in_file.or_else(|| {
            // Of children each may move as much.
            let class = Some(job.found.class).filter(|class| !class.is_per_child())?;
            let (most, used) = (class.disk_total()?.get(), class.disk_total_used().get());
            let left = most.saturating_sub(used) as f64 / rate.get() as f64;
            let left = Duration::try_from_secs_f64(left).ok().filter(|_| rate.get() > 0);
            Some((used as f64 / most.max(1) as f64, left))
        })
    }

    fn done_of(&mut self, reading: Reading, now: Instant) -> Option<(f64, Option<Duration>)> {
        let (first, at) = match self.first {
            Some(first) if first.0.file == reading.file => first,
            _ => *self.first.insert((reading, now)),
        };
        let passed = reading.offset.checked_sub(first.offset).filter(|passed| *passed > 0)?;
        let speed = passed as f64 / now.duration_since(at).as_secs_f64();
        let left = reading.size.saturating_sub(reading.offset) as f64 / speed;
        let is_known = now >= at + KNOWN;
        let left = Duration::try_from_secs_f64(left).ok().filter(|_| is_known);
        Some((reading.offset.min(reading.size) as f64 / reading.size.max(1) as f64, left))
    }
}

impl State {
    /// The line, of at most so many columns.
    fn text(&self, columns: usize) -> String {
        let each = if self.each { " each child" } else { "" };
        let limit = self.limit.map(|limit| format!("{} of {limit}{each}", self.rate));
        let done = self.done.map(|(part, left)| {
            // A class may have moved a little more than its total.
            let percent = format!("{:.0} %", (part * 100.0).floor().min(100.0));
            left.map_or(percent.clone(), |left| format!("{percent}, {} left", duration(left)))
        });
        let held = (self.held >= WORTH).then(|| format!("held {:.1} s", self.held));
        let (waits, named) = match &self.waits {
            None => (None, None),
            Some((waits, most)) => {
                (Some(waits.clone()), most.as_ref().map(|most| format!("{waits} (most: {most})")))
            }
        };
        let moved = format!("{} moved", Bytes::new(self.moved));
        // Of each the longest that fits.
        let parts = [
            vec![limit, Some(self.rate.clone())],
            vec![done],
            vec![Some(moved)],
            vec![held],
            vec![named, waits],
        ];
        let mut line = String::new();
        for part in parts {
            let separated =
                |text: String| if line.is_empty() { text } else { format!("{line}, {text}") };
            let mut fitting = part.into_iter().flatten().map(separated);
            if let Some(longer) = fitting.find(|text| text.width() <= columns) {
                line = longer;
            }
        }
        line
    }
}

/// Both ways of what is shown.
const fn ways(of_network: bool) -> [Resource; 2] {
    if of_network {
        [Resource::NetUp, Resource::NetDown]
    } else {
        [Resource::Read, Resource::Write]
    }
}

/// A time in whole seconds, or in the two largest of its units.
fn duration(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => Nanos(seconds.saturating_mul(Nanos::SECOND.0)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            rate: "4.8 MiB/s".into(),
            limit: Some(Rate::per_second(5 << 20)),
            each: false,
            moved: 3 << 30,
            held: 12.34,
            done: Some((0.456, Some(Duration::from_secs(754)))),
            waits: Some((
                "waits for others on its disks".into(),
                Some("firefox, process 812".into()),
            )),
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let all = "4.8 MiB/s of 5 MiB/s, 45 %, 12 min 34 s left, 3 GiB moved, held 12.3 s, waits for others on its disks (most: firefox, process 812)";
        assert_eq!(state().text(200), all);
        let unnamed = &all[..all.find(" (most").unwrap()];
        assert_eq!(state().text(120), unnamed);
        let short = "4.8 MiB/s of 5 MiB/s, 45 %, 12 min 34 s left, 3 GiB moved";
        assert_eq!(state().text(59), short);
        assert_eq!(state().text(19), "4.8 MiB/s");
        assert_eq!(state().text(3), "");
        for columns in 0..200 {
            assert!(state().text(columns).width() <= columns);
        }
    }

    #[test]
    fn names_count_by_the_columns_that_they_take() {
        let mut wide = state();
        wide.waits = Some(("a".into(), Some("備份備份備份".into())));
        let full = wide.text(200);
        assert_eq!(wide.text(full.width()), full);
        assert!(!wide.text(full.width() - 1).contains('備'));
    }

    #[test]
    fn what_is_not_known_is_not_shown() {
        let state = State { rate: "0 B/s".into(), ..State::default() };
        assert_eq!(state.text(80), "0 B/s, 0 B moved");
        let part = State { done: Some((1.0, None)), ..state };
        assert_eq!(part.text(80), "0 B/s, 100 %, 0 B moved");
        let beyond = State { done: Some((1.04, None)), rate: "0 B/s".into(), ..State::default() };
        assert_eq!(beyond.text(80), "0 B/s, 100 %, 0 B moved", "no more than all is done");
    }

    #[test]
    fn times_are_told_in_two_units() {
        let told = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!([told(59), told(61), told(7_260)], ["59 s", "1 min 1 s", "2 h 1 min"]);
        assert_eq!([told(86_399), told(266_400)], ["23 h 59 min", "3 d 2 h"]);
        assert_eq!([told(60), told(3_600), told(86_400)], ["1 min", "1 h", "1 d"]);
        assert_eq!(told(u64::MAX), Nanos(u64::MAX).to_string());
    }
}
