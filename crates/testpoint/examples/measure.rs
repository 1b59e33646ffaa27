//! Measures what a polite job costs and gets, on the reader's own machine:
//!
//! - `measure cost`: time of a testpoint that returns early, and processor time of a full one;
//! - `measure shares 2 10 100`: what so many polite processes get of an idle machine;
//! - `measure idle`: how much longer work takes with testpoints than without, by paired runs;
//! - `measure resume`: how soon a suspended job runs again after a load ends.
//!
//! Run with `cargo run --release -p discnice-testpoint --example measure -- cost`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_manners::Config;
use discnice_testpoint::{Outcome, Settings, configure, set_priority, testpoint};
use discnice_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    // As section 9.1 of the paper: without probation, which a machine in use would impose.
    let config = Config { probation: Nanos(0), ..Config::default() };
    let full = std::env::args().nth(1).is_some_and(|mode| mode == "full");
    // The cost is the same whatever the judgment; a machine in use must not suspend the measurement.
    let config = if full { Config { slack: 9.9, ..config } } else { config };
    let interval = if full { Nanos(0) } else { Settings::default().interval };
    let mut settings = Settings { config, interval, ..Settings::default() };
    if std::env::args().nth(1).is_none_or(|mode| mode != "work") {
        settings.targets = None;
    }
    configure(settings).expect("first call");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = || arguments[1..].iter().filter_map(|a| a.parse::<usize>().ok());
    match arguments.first().map(String::as_str) {
        Some("cost") => cost(),
        Some("shares") => numbers().for_each(shares),
        Some("idle") => idle(numbers().next().unwrap_or(31)),
        Some("resume") => resume(),
        Some("full") => full_cost(),
        Some("worker") => worker(arguments[1].parse().expect("a priority")),
        Some("work") => println!("{}", work(arguments[1] == "polite").as_nanos()),
        _ => eprintln!("measure: say cost, shares N…, idle [RUNS] or resume"),
    }
}

/// Deterministic work of about ten microseconds.
fn hash(seed: u64) -> u64 {
    (0..8000u64).fold(seed, |sum, i| (sum ^ i).wrapping_mul(0x0100_0000_01b3))
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn cost() {
    // First, because this process takes no part in turns before its first testpoint.
    let told = itself(&["full"]).output().expect("run itself").stdout;
    print!("{}", String::from_utf8_lossy(&told));
    testpoint(0, &[0.0]);
    let early = (0..9).map(|_| {
        let start = Instant::now();
        let calls = 200_000;
        for i in 0..calls {
            std::hint::black_box(testpoint(0, std::hint::black_box(&[f64::from(i)])));
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    });
    println!("early return: {:.1} ns (median of 9)", median(early.collect()));
}

/// Without a shortest interval, a testpoint is a full one at each tick of the coarse clock.
fn full_cost() {
    let (mut full, mut done) = (Vec::new(), 0.0);
    while full.len() < 1000 {
        done += 1.0;
        let before = thread_cpu();
        let outcome = testpoint(0, std::hint::black_box(&[done]));
        let took = (thread_cpu() - before).as_nanos() as f64 / 1e3;
        if matches!(outcome, Outcome::Went(_)) {
            full.push(took);
        }
        std::hint::black_box(hash(done as u64));
    }
    let mean = full.iter().sum::<f64>() / full.len() as f64;
    println!("full: {:.1} us of processor time (median of 1000), mean {mean:.1} us", median(full));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Works for ever, and tells each second how long it was let run and suspended, in nanoseconds.
fn worker(priority: u32) {
    set_priority(priority);
    let (mut done, mut ran, mut suspended) = (0.0, 0u64, 0u64);
    let mut told = Instant::now();
    loop {
        let before = Instant::now();
        // Sleeping work measures turns alone: it neither contends nor notices contention for processors.
        std::thread::sleep(Duration::from_millis(2));
        done += 1.0;
        ran += before.elapsed().as_nanos() as u64;
        if let Outcome::Suspended(time) = testpoint(0, &[done]) {
            suspended += time.0;
        }
        if told.elapsed() >= Duration::from_millis(500) {
            told = Instant::now();
            println!("{ran} {suspended}");
        }
    }
}

fn itself(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(arguments);
    command
}

/// Starts workers with priorities 100, 200, 300, 100, … and prints their shares.
fn shares(count: usize) {
    let weights: Vec<usize> = (0..count).map(|i| 100 * (1 + i % 3)).collect();
    let mut children: Vec<Child> = weights
        .iter()
        .map(|w| itself(&["worker", &w.to_string()]).stdout(Stdio::piped()).spawn().expect("spawn"))
        .collect();
    let rounds = if count > 20 { 100 } else { 30 };
    std::thread::sleep(Duration::from_secs(rounds));
    for child in &mut children {
        // Only processes that this program started.
        let _ = child.kill();
    }
    let told: Vec<(f64, f64)> = children.into_iter().map(last_told).collect();
    let total: f64 = told.iter().map(|t| t.0).sum();
    let weight: usize = weights.iter().sum();
    let suspended: f64 = told.iter().map(|t| t.1).sum::<f64>() / 1e9;
    for class in [100, 200, 300] {
        let of_class = |(i, t): (usize, &(f64, f64))| (weights[i] == class).then_some(t.0);
        let ran: Vec<f64> = told.iter().enumerate().filter_map(of_class).collect();
        if ran.is_empty() {
            continue;
        }
        let mean = ran.iter().sum::<f64>() / ran.len() as f64 / total;
        let fair = class as f64 / weight as f64;
        println!(
            "{count} jobs, priority {class}: {:.2} % of the time each, fair {:.2} %, off by {:+.1} %",
            100.0 * mean,
            100.0 * fair,
            100.0 * (mean / fair - 1.0)
        );
    }
    println!("{count} jobs: suspended for {suspended:.2} s of {rounds} s each");
}

fn last_told(mut child: Child) -> (f64, f64) {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let last = lines.map_while(Result::ok).last().unwrap_or_default();
    let _ = child.wait();
    let mut numbers = last.split(' ').filter_map(|n| n.parse().ok());
    (numbers.next().unwrap_or(0.0), numbers.next().unwrap_or(0.0))
}

/// A fixed amount of work; with testpoints or without.
fn work(polite: bool) -> Duration {
    let start = Instant::now();
    for i in 0..200_000u64 {
        std::hint::black_box(hash(i));
        if polite {
            testpoint(0, &[i as f64]);
        }
    }
    start.elapsed()
}

/// Many short pairs rather than few long ones, because the speed of a machine that others share
/// drifts. The targets are learned before, so that every testpoint is judged.
fn idle(runs: usize) {
    let state = tempfile::tempdir().expect("a folder");
    let run = |kind: &str| -> f64 {
        let mut command = itself(&["work", kind]);
        let output = command.env("XDG_STATE_HOME", state.path()).output().expect("run itself");
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(f64::NAN)
    };
    for _ in 0..4 {
        run("polite");
    }
    let ratios: Vec<f64> = (0..runs)
        .map(|i| {
            // Either order, so that a drift of the machine cancels.
            let (plain, polite) = if i % 2 == 0 {
                let plain = run("plain");
                (plain, run("polite"))
            } else {
                let polite = run("polite");
                (run("plain"), polite)
            };
            100.0 * (polite / plain - 1.0)
        })
        .collect();
    println!(
        "idle machine: {:+.2} % (median of {runs} pairs; mean {:+.2} %)",
        median(ratios.clone()),
        ratios.iter().sum::<f64>() / ratios.len() as f64
    );
}

/// Puts this process and the load on one processor, loads it for 20 s, and tells what happened.
fn resume() {
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    rustix::thread::sched_setaffinity(None, &one).expect("affinity");
    let start = Instant::now();
    let (mut done, mut load, mut load_ended) = (0.0, None::<Child>, None::<Duration>);
    let mut in_load = Duration::ZERO;
    loop {
        let before = start.elapsed();
        std::hint::black_box(hash(done as u64));
        done += 1.0;
        let outcome = testpoint(0, &[done]);
        let now = start.elapsed();
        if load.is_some() && load_ended.is_none() && !matches!(outcome, Outcome::Suspended(_)) {
            in_load += now - before;
        }
        if load.is_none() && now > Duration::from_secs(12) {
            load = Command::new("timeout")
                .args(["20", "sh", "-c", "while :; do :; done"])
                .spawn()
                .ok();
        }
        if let Some(child) = &mut load
            && load_ended.is_none()
            && child.try_wait().is_ok_and(|status| status.is_some())
        {
            load_ended = Some(Duration::from_secs(32).max(now));
            println!(
                "load of 20 s: the job ran {:.1} s of it; running again {:.2} s after its start + 20 s",
                in_load.as_secs_f64(),
                now.as_secs_f64() - 32.0
            );
        }
        if now > Duration::from_secs(40) {
            return;
        }
    }
}
