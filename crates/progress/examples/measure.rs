//! Measures what a polite job costs and gets, on the reader's own machine:
//!
//! - `measure cost`: time of a testpoint that returns early, and processor time of a full one;
//! - `measure shares 2 10 100`: what so many polite processes get of an idle machine;
//! - `measure idle`: how much longer work takes with testpoints than without, by paired blocks;
//! - `measure resume`: how soon a suspended job runs again after a load ends.
//!
//! Run with `cargo run --release -p discnice-progress --example measure -- cost`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_progress::model::Config;
use discnice_progress::testpoint::{Outcome, Settings, configure, set_priority, testpoint};
use discnice_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    // As section 9.1 of the paper: without probation, which a machine in use would impose.
    let config = Config { probation: Nanos(0), ..Config::default() };
    let full = std::env::args().nth(1).is_some_and(|mode| mode == "full");
    // The cost is the same whatever the judgment; a machine in use must not suspend the measurement.
    let config = if full { Config { slack: 9.9, ..config } } else { config };
    let interval = if full { Nanos(0) } else { Settings::default().interval };
    configure(Settings { config, interval, targets: None, ..Settings::default() })
        .expect("first call");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = || arguments[1..].iter().filter_map(|a| a.parse::<usize>().ok());
    match arguments.first().map(String::as_str) {
        Some("cost") => cost(),
        Some("shares") => numbers().for_each(shares),
        Some("idle") => idle(numbers().next().unwrap_or(300)),
        Some("resume") => resume(),
        Some("full") => full_cost(),
        Some("worker") => worker(arguments[1].parse().expect("a priority")),
        _ => eprintln!("measure: say cost, shares N…, idle [PAIRS] or resume"),
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

/// Works for ever, and tells after each turn its age, for how long it has been let run, and for how
/// long suspended, in nanoseconds.
fn worker(priority: u32) {
    set_priority(priority);
    let start = Instant::now();
    let (mut done, mut ran, mut suspended) = (0.0, 0u64, 0u64);
    loop {
        let before = Instant::now();
        // Sleeping work measures turns alone: it neither contends nor notices contention for processors.
        std::thread::sleep(Duration::from_millis(2));
        done += 1.0;
        ran += before.elapsed().as_nanos() as u64;
        let outcome = testpoint(0, &[done]);
        if let Outcome::Suspended(time) = outcome {
            suspended += time.0;
        }
        if outcome != Outcome::TooSoon {
            println!("{} {ran} {suspended}", start.elapsed().as_nanos());
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
    // A share is seen to half a turn of the least favoured, of which there are some fourteen.
    let seconds = if count > 20 { 300 } else { 20 };
    std::thread::sleep(Duration::from_secs(seconds));
    for child in &mut children {
        // Only processes that this program started.
        let _ = child.kill();
    }
    let told: Vec<Told> = children.into_iter().map(told).collect();
    let total: f64 = told.iter().map(|told| told.rate).sum();
    let weight: usize = weights.iter().sum();
    let off = |(weight_of, told): (&usize, &Told)| {
        100.0 * (told.rate / total / (*weight_of as f64 / weight as f64) - 1.0)
    };
    let off: Vec<(usize, f64)> =
        weights.iter().zip(&told).map(|pair| (*pair.0, off(pair))).collect();
    for class in [100, 200, 300] {
        let of_class: Vec<f64> = off.iter().filter(|one| one.0 == class).map(|one| one.1).collect();
        if of_class.is_empty() {
            continue;
        }
        let mean = of_class.iter().sum::<f64>() / of_class.len() as f64;
        let most = of_class.iter().copied().fold(0.0, |most, off| f64::max(most, off.abs()));
        println!(
            "{count} jobs, priority {class}: share off by {mean:+.1} % on average, {most:.1} % at most"
        );
    }
    let suspended: f64 = told.iter().map(|told| told.suspended).sum();
    println!(
        "{count} jobs: together they ran {:.1} % of the time, and were suspended for {suspended:.2} s of {seconds} s each",
        100.0 * total
    );
}

/// What a worker told from its second turn to its last.
struct Told {
    /// Share of the time that it ran.
    rate: f64,
    /// Seconds.
    suspended: f64,
}

fn told(mut child: Child) -> Told {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let numbers = |line: String| -> Vec<f64> {
        line.split(' ').filter_map(|number| number.parse().ok()).collect()
    };
    // A last line that the kill cut short has fewer numbers.
    let turns: Vec<Vec<f64>> = lines.map(numbers).filter(|turn| turn.len() == 3).collect();
    let _ = child.wait();
    let [_, first, .., last] = turns.as_slice() else { return Told { rate: 0.0, suspended: 0.0 } };
    Told { rate: (last[1] - first[1]) / (last[0] - first[0]), suspended: last[2] / 1e9 }
}

/// About a fifth of a second of work, so that some of its testpoints are full ones; without
/// testpoints it is counted by the next block that has them. How long it took and was suspended.
fn block(done: &mut f64, polite: bool) -> (f64, f64) {
    let start = Instant::now();
    let mut suspended = Nanos(0);
    for _ in 0..20_000u64 {
        std::hint::black_box(hash(*done as u64));
        *done += 1.0;
        if polite && let Outcome::Suspended(time) = testpoint(0, &[*done]) {
            suspended = suspended.plus(time);
        }
    }
    (start.elapsed().as_secs_f64(), suspended.as_secs_f64())
}

/// Blocks of one process by turns with testpoints and without, because the speed of a machine that
/// others share drifts, and that of a process depends on where its memory lies.
fn idle(pairs: usize) {
    let mut done = 0.0;
    // It learns its targets first, so that every testpoint is judged.
    for _ in 0..100 {
        block(&mut done, true);
    }
    let (mut took, mut suspended, mut ratios) = ([0.0, 0.0], 0.0, Vec::new());
    for i in 0..pairs {
        let mut pair = [0.0, 0.0];
        for polite in [i % 2 == 0, i % 2 != 0] {
            let (time, waited) = block(&mut done, polite);
            pair[usize::from(polite)] = time;
            suspended += waited;
        }
        ratios.push(100.0 * (pair[1] / pair[0] - 1.0));
        took = [took[0] + pair[0], took[1] + pair[1]];
    }
    println!(
        "idle machine: {:+.2} % (median of {pairs} pairs), {:+.2} % in all; suspended for {suspended:.2} of {:.0} s",
        median(ratios),
        100.0 * (took[1] / took[0] - 1.0),
        took[1]
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
