//! What a polite job costs the foreground, in paired runs with programs that are not ours:
//!
//! - `contended cpu [ROUNDS] [SECONDS]`: gcc compiles while xz compresses on the same processor;
//! - `contended disk [ROUNDS] [SECONDS]`: sqlite3 writes transactions while dd reads and writes;
//! - `contended idle [ROUNDS]`: a fixed job alone, regulated from outside and not.
//!
//! Each round runs the foreground alone, with the job unregulated, and with the job regulated from
//! outside by the default metrics, after the job learned its targets on the idle machine.
//! Run with `cargo run --release -p discnice-benice --example contended -- cpu`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_benice::stopper::Signals;
use discnice_benice::tree::{Process, Tree};
use discnice_benice::{Metric, Options, Outside, regulate};
use discnice_manners::Config;
use discnice_units::Nanos;
use rustix::process::{Pid, Signal, kill_process_group};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: u64| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let folder = tempfile::tempdir_in("/var/tmp").expect("a folder in /var/tmp");
    match arguments.first().map(String::as_str) {
        Some("regulate") => regulated(number(1, 0) as u32, &arguments[2]),
        Some("idle") => idle(number(1, 5)),
        Some("cpu") => {
            contended(&Load::cpu(folder.path(), number(2, 25)), folder.path(), number(1, 3));
        }
        Some("disk") => {
            contended(&Load::disk(folder.path(), number(2, 25)), folder.path(), number(1, 3));
        }
        _ => eprintln!("contended: say cpu, disk or idle"),
    }
}

/// A foreground that does a fixed amount of work, and a background job that never ends.
struct Load {
    foreground: String,
    background: String,
}

impl Load {
    fn cpu(folder: &Path, seconds: u64) -> Self {
        let source = folder.join("work.c");
        let functions = (0..400).map(|i| {
            format!("double f{i}(double*a,int n){{double s=0;for(int i=0;i<n;i++)for(int j=0;j<i;j++)s+=a[i]*a[j]/{i}.5;return s;}}\n")
        });
        std::fs::write(&source, functions.collect::<String>()).expect("write the source");
        let once = format!("taskset -c 1 gcc -O3 -c -o /dev/null {}", source.display());
        Self {
            foreground: repeated(&once, seconds),
            background: "exec taskset -c 1 xz -6 -T1 -c < /dev/urandom > /dev/null".into(),
        }
    }

    fn disk(folder: &Path, seconds: u64) -> Self {
        let (database, scratch) = (folder.join("db"), folder.join("scratch"));
        let insert = "insert into t select randomblob(16000);";
        let sql = insert.repeat(50);
        let once =
            format!("sqlite3 {} \"create table if not exists t(x); {sql}\"", database.display());
        Self {
            foreground: repeated(&once, seconds),
            background: format!(
                "while :; do dd if=/dev/zero of={} bs=256k count=400 oflag=direct,dsync 2>/dev/null; done",
                scratch.display()
            ),
        }
    }
}

/// `once`, so often that it takes about `seconds` on the machine as it is now.
fn repeated(once: &str, seconds: u64) -> String {
    shell(once);
    let count = (seconds as f64 / shell(once).max(0.001)).ceil().max(1.0);
    format!("for i in $(seq {count}); do {once}; done")
}

/// Runs a script to its end; seconds.
fn shell(script: &str) -> f64 {
    let start = Instant::now();
    let status = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).status();
    assert!(status.is_ok_and(|s| s.success()), "the foreground failed: {script}");
    start.elapsed().as_secs_f64()
}

/// The background job in a process group of its own, so that all of it can be ended.
fn background(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).process_group(0).spawn().expect("start the job")
}

fn end(mut job: Child) {
    let _ = kill_process_group(Pid::from_child(&job), Signal::KILL);
    let _ = job.wait();
}

fn regulator(job: &Child, targets: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.arg("regulate").arg(job.id().to_string()).arg(targets).spawn().expect("start myself")
}

struct Told;

impl Outside for Told {
    fn tell(&mut self, line: &str) {
        eprintln!("{line}");
    }

    fn held(&mut self, _: &Tree) -> Nanos {
        Nanos(0)
    }
}

fn regulated(pid: u32, targets: &str) {
    let options = Options {
        roots: vec![Process::find(pid).expect("a living process")],
        metrics: Metric::default_set(),
        circumstances: String::new(),
        reports: None,
        config: Config { probation: Nanos(0), ..Config::default() },
        targets: Some(targets.into()),
        take_turns: false,
    };
    let mut signals = Signals::start().expect("a guardian");
    let summary = regulate(&options, &mut signals, &mut Told);
    println!(
        "    (stopped {} times, for {} of {})",
        summary.suspensions, summary.suspended, summary.lasted
    );
}

fn contended(load: &Load, folder: &Path, rounds: u64) {
    let targets = folder.join("targets");
    let teach = background(&load.background);
    let mut teacher = regulator(&teach, &targets);
    std::thread::sleep(Duration::from_secs(25));
    end(teach);
    let _ = teacher.wait();
    let (mut plain, mut polite) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let alone = shell(&load.foreground);
        let job = background(&load.background);
        std::thread::sleep(Duration::from_secs(3));
        let beside = shell(&load.foreground);
        end(job);
        let job = background(&load.background);
        let mut watcher = regulator(&job, &targets);
        std::thread::sleep(Duration::from_secs(10));
        let with_polite = shell(&load.foreground);
        end(job);
        let _ = watcher.wait();
        plain.push(100.0 * (beside / alone - 1.0));
        polite.push(100.0 * (with_polite / alone - 1.0));
        println!(
            "round {round}: alone {alone:.1} s, unregulated {beside:.1} s, polite {with_polite:.1} s"
        );
    }
    println!(
        "foreground longer by: unregulated {:+.1} %, polite {:+.1} % (medians of {rounds})",
        median(plain),
        median(polite)
    );
}

fn idle(rounds: u64) {
    let script = "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done";
    let ratios: Vec<f64> = (0..rounds)
        .map(|_| {
            let alone = shell(script);
            let folder = tempfile::tempdir().expect("a folder");
            let start = Instant::now();
            let mut job = background(script);
            let mut watcher = regulator(&job, folder.path());
            let _ = job.wait();
            let watched = start.elapsed().as_secs_f64();
            let _ = watcher.wait();
            100.0 * (watched / alone - 1.0)
        })
        .collect();
    println!(
        "idle machine, regulated from outside: {:+.2} % (median of {ratios:.2?})",
        median(ratios.clone())
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
