//! Rates over time: a thread that reads the counters of the device, of process groups and of the
//! processors while an experiment runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::disk::DeviceCounters;
use crate::proc::{self, Calls};

/// Time between two readings. The papers plot means over one second.
const PERIOD: Duration = Duration::from_millis(250);

/// Cumulative counters at one moment, by name: bytes, or seconds of processor time.
type Reading = BTreeMap<String, f64>;

/// A running sampler.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Vec<(f64, Reading)>>,
}

/// What was read.
pub struct Courses(Vec<(f64, Reading)>);

impl Sampler {
    /// Begins to read the counters of `device` and of the named process groups.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(device: PathBuf, groups: Vec<(&'static str, u32)>) -> anyhow::Result<Self> {
        let (stop, stopped) = channel();
        let begin = Instant::now();
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                let mut readings = Vec::new();
                loop {
                    readings.push((begin.elapsed().as_secs_f64(), read(&device, &groups)));
                    let next = PERIOD * readings.len() as u32;
                    let pause = next.saturating_sub(begin.elapsed());
                    if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                        readings.push((begin.elapsed().as_secs_f64(), read(&device, &groups)));
                        return readings;
                    }
                }
            })
            .context("cannot start the sampling thread")?;
        Ok(Self { stop, thread })
    }

    /// Takes a last reading; returns all of them.
    ///
    /// # Errors
    /// The sampling thread died.
    pub fn finish(self) -> anyhow::Result<Courses> {
        // A thread that is gone already is found by joining it.
        let _ = self.stop.send(());
        self.thread.join().map(Courses).ok().context("the sampling thread died")
    }
}

impl Courses {
    /// How much the counter `name` grew; a process that ended takes its count along, so the largest
    /// reading counts.
    #[must_use]
    pub fn total(&self, name: &str) -> f64 {
        let readings = self.0.iter().filter_map(|(_, reading)| reading.get(name).copied());
        let (low, high) = readings
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        (high - low).max(0.0)
    }

    /// Growth per second of the counter `name`, as means over about `width` seconds.
    #[must_use]
    pub fn rate(&self, name: &str, width: f64) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        let mut begin: Option<(f64, f64)> = None;
        for (time, reading) in &self.0 {
            let Some(count) = reading.get(name).copied() else { continue };
            match begin {
                None => begin = Some((*time, count)),
                Some((from, before)) if time - from >= width - 0.01 => {
                    points.push((*time, ((count - before) / (time - from)).max(0.0)));
                    begin = Some((*time, count));
                }
                Some(_) => {}
            }
        }
        points.extend(self.rest(name, width, begin.map_or(0.0, |(from, _)| from)));
        points
    }

    /// The mean over the last `width` seconds, if readings go on behind `from`: what comes at the end is
    /// often the most.
    fn rest(&self, name: &str, width: f64, from: f64) -> Option<(f64, f64)> {
        let mut back = self.0.iter().rev().filter_map(|(time, all)| Some((*time, *all.get(name)?)));
        let (end, count) = back.next()?;
        let (begin, before) = back.find(|(time, _)| end - time >= width - 0.01)?;
        (end > from).then(|| (end, ((count - before) / (end - begin)).max(0.0)))
    }
}

fn read(device: &std::path::Path, groups: &[(&'static str, u32)]) -> Reading {
    let mut reading = Reading::new();
    // What cannot be read is missing from the record, not invented.
    if let Ok(counters) = DeviceCounters::of(device) {
        reading.insert("requests".into(), (counters.reads + counters.writes) as f64);
        reading.insert("device".into(), (counters.read_bytes + counters.write_bytes) as f64);
    }
    let mut own_cpu = 0.0;
    for (name, group) in groups {
        let (calls, seconds) = group_counters(*group);
        reading.insert((*name).into(), calls.disk_bytes as f64);
        reading.insert(format!("{name} calls"), calls.bytes as f64);
        reading.insert(format!("{name} operations"), calls.count as f64);
        own_cpu += seconds;
    }
    reading.insert("own cpu".into(), own_cpu);
    if let Some(busy) = cpu_seconds() {
        reading.insert("cpu".into(), busy);
    }
    reading
}

/// Of all processes of a group: disk bytes, calls and their bytes, and seconds of processor time.
fn group_counters(group: u32) -> (Calls, f64) {
    let mut sum = Calls::default();
    let mut ticks = 0;
    for (pid, stat) in proc::of_group(group) {
        let calls = Calls::of(pid);
        sum.bytes += calls.bytes;
        sum.count += calls.count;
        sum.disk_bytes += calls.disk_bytes;
        ticks += stat.cpu_ticks;
    }
    (sum, ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Seconds that all processors were busy, waiting for disks not counted: proc_stat(5).
fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().map(|t| t.parse().ok()).collect::<Option<_>>()?;
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|field| ticks.get(*field)).sum::<f64>();
    Some(busy / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_means_over_the_width() {
        let reading = |count: f64| Reading::from([("x".to_owned(), count)]);
        let courses = Courses(vec![
            (0.0, reading(100.0)),
            (0.5, reading(150.0)),
            (1.0, reading(300.0)),
            (1.5, reading(300.0)),
            (2.0, reading(310.0)),
        ]);
        assert_eq!(courses.rate("x", 1.0), [(1.0, 200.0), (2.0, 10.0)]);
        assert_eq!(courses.rate("x", 1.5), [(1.5, 400.0 / 3.0), (2.0, 160.0 / 1.5)]);
        assert_eq!(courses.total("x"), 210.0);
        assert_eq!(courses.rate("y", 1.0), []);
        assert_eq!(courses.total("y"), 0.0);
    }

    #[test]
    fn our_own_writes_are_seen() {
        assert!(cpu_seconds().expect("every kernel says it") > 0.0);
    }
}
