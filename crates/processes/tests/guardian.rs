//! A job that was stopped by signals goes on when its regulator or the guardian is killed.
//!
//! Without the test harness, because only a program of one thread may start a guardian: this program
//! starts itself as the regulator.

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_processes::Stopper;
use discnice_processes::fork;
use discnice_processes::guardian::continue_abandoned;
use discnice_processes::stopper::Signals;
use discnice_processes::tree::{Process, Tree};
use discnice_sys::procfs;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, job] = &words[..]
        && role == "regulate"
    {
        return regulate(job.parse().expect("a PID"));
    }
    if let [_, role, job] = &words[..]
        && role == "kept"
    {
        let job = job.parse().expect("a PID");
        let go_on = || ControlFlow::Continue(());
        fork::kept(Duration::from_secs(60), go_on, || regulate(job)).expect("a keeper");
        return;
    }
    killed_regulator();
    killed_guardian();
    stopped_regulator();
    killed_together();
    println!("test guardian ... ok");
}

/// If all are killed at once, the job goes on as soon as the record is looked at, and not while they live.
fn killed_together() {
    let (job, regulator) = start();
    continue_abandoned();
    assert!(is_stopped(&job), "its regulator lives");
    let guardian = children(regulator.id()).next().expect("a guardian");
    send("-KILL", &[guardian, regulator.id()]);
    end(regulator);
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_stopped(&job), "nothing that could continue it is left");
    continue_abandoned();
    wait_until("left stopped by those that were killed", || !is_stopped(&job));
    end(job);
}

/// Stops the job and keeps it stopped until killed.
fn regulate(job: u32) {
    let mut tree = Tree::new(&[Process::find(job).expect("a living job")]);
    let mut signals = Signals::start().expect("a guardian");
    signals.stop(&mut tree).expect("it may be stopped");
    // Of a second regulator nothing is read.
    let _ = writeln!(std::io::stdout(), "stopped");
    loop {
        std::thread::sleep(Duration::from_millis(20));
        signals.keep(&mut tree).expect("a guardian");
    }
}

fn start() -> (Child, Child) {
    start_as("regulate")
}

fn start_as(role: &str) -> (Child, Child) {
    let job = Command::new("sh").args(["-c", "while :; do sleep 0.1; done"]).spawn().unwrap();
    let mut regulator = Command::new(std::env::current_exe().unwrap())
        .args([role, &job.id().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(regulator.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "stopped\n");
    wait_until("it is not stopped", || is_stopped(&job));
    (job, regulator)
}

fn is_stopped(job: &Child) -> bool {
    procfs::stat(job.id()).is_some_and(|stat| stat.state == b'T')
}

fn wait_until(otherwise: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn killed_regulator() {
    let (job, regulator) = start();
    end(regulator);
    wait_until("left stopped by a killed regulator", || !is_stopped(&job));
    end(job);
}

/// A regulator that is stopped is killed by its deadline, so that the guardian continues the job;
/// when its keeper is continued, another regulator stops the job again.
fn stopped_regulator() {
    let (job, keeper) = start_as("kept");
    let worker = children(keeper.id()).next().expect("a worker");
    send("-STOP", &[keeper.id(), worker]);
    wait_until("left stopped by a stopped regulator", || !is_stopped(&job));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!is_stopped(&job), "nothing stops it while the keeper stands");
    send("-CONT", &[keeper.id()]);
    wait_until("not stopped again", || is_stopped(&job));
    end(keeper);
    wait_until("left stopped by a killed keeper", || !is_stopped(&job));
    end(job);
}

fn children(parent: u32) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(move |id| procfs::stat(*id).is_some_and(|stat| stat.parent == parent))
}

fn send(signal: &str, processes: &[u32]) {
    let numbers = processes.iter().map(u32::to_string);
    assert!(Command::new("kill").arg(signal).args(numbers).status().unwrap().success());
}

/// The regulator starts another guardian within a look.
fn killed_guardian() {
    let (job, regulator) = start();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if procfs::stat(id).is_some_and(|stat| stat.parent == regulator.id()) {
            let killed = Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
            assert!(killed.success());
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_stopped(&job), "the regulator still holds it");
    end(regulator);
    wait_until("left stopped by both", || !is_stopped(&job));
    end(job);
}
