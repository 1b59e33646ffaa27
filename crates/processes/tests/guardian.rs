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
use discnice_processes::guardian::{Guardian, continue_abandoned};
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
    if words.get(1).is_some_and(|role| role == "threads") {
        return run_threads();
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
    stops_by_others_last();
    a_stop_by_another_outlives_all_that_held();
    stop_signals_with_a_handler_are_not_lost();
    a_second_signal_of_ours_is_none_of_anothers();
    two_holders_leave_nothing_stopped();
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

fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_micros(500));
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

/// A job that counts in a file while it runs, and how long that is.
fn counting(script: &str) -> (Child, Process, tempfile::NamedTempFile) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let job = Command::new("sh").args(["-c", script]).arg(log.path()).spawn().unwrap();
    let process = Process::find(job.id()).unwrap();
    let counted = || log.as_file().metadata().unwrap().len();
    wait_until("it does not begin", || counted() > 0);
    (job, process, log)
}

/// A process that was stopped by another while we held it stays stopped until that continues it.
fn stops_by_others_last() {
    let mut guardian = Guardian::start().unwrap();
    let (job, process, _log) = counting("while :; do echo >>\"$0\"; sleep 0.01; done");
    assert!(guardian.stop(process).unwrap());
    wait_until("it is not stopped", || is_stopped(&job));
    send("-STOP", &[job.id()]);
    guardian.resume_one(process);
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_stopped(&job), "the stop by another is lost");
    // It is that one's now.
    assert!(!guardian.stop(process).unwrap());
    send("-CONT", &[job.id()]);
    wait_until("continued in vain", || !is_stopped(&job));
    assert!(guardian.stop(process).unwrap());
    guardian.resume();
    wait_until("left stopped", || !is_stopped(&job));
    // Continued by the other one as well, it is ours again.
    assert!(guardian.stop(process).unwrap());
    wait_until("it is not stopped", || is_stopped(&job));
    send("-STOP", &[job.id()]);
    send("-CONT", &[job.id()]);
    wait_until("it is not stopped again", || {
        let _ = guardian.keep(process);
        is_stopped(&job)
    });
    guardian.resume();
    wait_until("left stopped", || !is_stopped(&job));
    end(job);
}

fn a_stop_by_another_outlives_all_that_held() {
    let (job, regulator) = start();
    send("-STOP", &[job.id()]);
    end(regulator);
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_stopped(&job), "the guardian continued what another had stopped");
    end(job);

    let (job, regulator) = start();
    let guardian = children(regulator.id()).next().expect("a guardian");
    send("-KILL", &[guardian, regulator.id()]);
    end(regulator);
    send("-STOP", &[job.id()]);
    continue_abandoned();
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_stopped(&job), "what another had stopped was continued");
    end(job);
}

/// SIGTSTP waits while its process is stopped, and is not discarded when that is continued.
fn stop_signals_with_a_handler_are_not_lost() {
    // A shell that starts programs may miss a signal at that moment.
    let script = "trap 'exit 7' TSTP; echo >>\"$0\"; while :; do :; done";
    let mut guardian = Guardian::start().unwrap();
    let (mut job, process, _log) = counting(script);
    assert!(guardian.stop(process).unwrap());
    wait_until("it is not stopped", || is_stopped(&job));
    send("-TSTP", &[job.id()]);
    guardian.resume();
    let mut ended = None;
    wait_until("its handler has not run", || {
        ended = job.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(7));
}

/// Threads that compute, for as long as they are let.
fn run_threads() {
    let spin = || {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        })
    };
    let all: Vec<_> = (0..6).map(|_| spin()).collect();
    all.into_iter().for_each(|thread| drop(thread.join()));
}

fn threads() -> (Child, Process) {
    let job = Command::new(std::env::current_exe().unwrap()).arg("threads").spawn().unwrap();
    let tasks = format!("/proc/{}/task", job.id());
    wait_until("it has no threads", || std::fs::read_dir(&tasks).unwrap().count() == 7);
    let process = Process::find(job.id()).unwrap();
    (job, process)
}

/// While some threads of a process have stopped and others have not, it is not signalled once more: that signal would stay
/// pending and look like another's. Neither does one that has stopped nothing yet.
fn a_second_signal_of_ours_is_none_of_anothers() {
    let mut guardian = Guardian::start().unwrap();
    let (job, process) = threads();
    for round in 0..2000 {
        assert!(guardian.stop(process).unwrap(), "round {round}");
        while round % 2 == 0 && !guardian.keep(process).unwrap() {}
        guardian.resume();
        wait_until("left stopped", || !is_stopped(&job));
    }
    end(job);
}

/// Two holders of one process, each with a guardian of its own.
fn two_holders_leave_nothing_stopped() {
    let mut holders = [Guardian::start().unwrap(), Guardian::start().unwrap()];
    let (job, process) = threads();
    for _ in 0..50 {
        assert!(holders[0].stop(process).unwrap());
        // As where both looked at the same moment.
        send("-CONT", &[job.id()]);
        assert!(holders[1].stop(process).unwrap());
        wait_until("it is not stopped", || is_stopped(&job));
        send("-STOP", &[job.id()]);
        holders[0].resume();
        holders[1].resume();
        wait_until("left stopped by both", || !is_stopped(&job));
    }
    end(job);
}
