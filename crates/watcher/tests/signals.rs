//! Holding by signals, below a shell with job control.
//!
//! Without the test harness, because only a program of one thread may start the process that continues what is held.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_processes::tree::Process;
use discnice_requirements::skip;
use discnice_sys::procfs;
use discnice_watcher::holding::{Grip, Hold, Refused, SharedGuardian, Signals};
use discnice_watcher::process::is_in_foreground;

/// Nothing that is waited for takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        skip!("no script(1)");
    }
    a_job_that_comes_to_the_foreground_while_it_is_held_stays_there();
    println!("test signals ... ok");
}

/// A shell on a terminal of its own, with a job in the background.
struct Shell {
    script: Child,
    job: Process,
    folder: tempfile::TempDir,
}

impl Shell {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (id, over) = (folder.path().join("id"), folder.path().join("over"));
        let words = format!(
            "set -m; sh -c 'while :; do :; done' & echo $! >{0}.new; mv {0}.new {0}; read line; fg; echo >{1}; read line",
            id.display(),
            over.display()
        );
        let mut script = Command::new("script");
        script.args(["-qfc", &format!("bash -c \"{}\"", words.replace('$', "\\$")), "/dev/null"]);
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let script = script.spawn().unwrap();
        wait_until("it does not begin", || id.exists());
        let job = fs::read_to_string(&id).unwrap().trim().parse().unwrap();
        Self { script, job: Process::find(job).unwrap(), folder }
    }

    fn over(&self) -> bool {
        Path::exists(&self.folder.path().join("over"))
    }

    fn is_stopped(&self) -> bool {
        procfs::stat(self.job.id()).is_some_and(|stat| stat.state == b'T')
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.job.pid, rustix::process::Signal::KILL);
        drop(self.script.stdin.take());
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// If it were stopped again, its shell would take the terminal back.
fn a_job_that_comes_to_the_foreground_while_it_is_held_stays_there() {
    let mut shell = Shell::start();
    let mut hold = Signals::new(shell.job, SharedGuardian::default());
    assert_eq!(hold.press(), Ok(Grip::Firm));
    wait_until("it is not stopped", || shell.is_stopped());
    assert_eq!(hold.press(), Ok(Grip::Firm), "in the background it is kept");
    // The shell continues it.
    shell.script.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    wait_until("it does not come to the foreground", || {
        is_in_foreground(shell.job.id()) && !shell.is_stopped()
    });
    assert_eq!(hold.press(), Err(Refused::Foreground));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!shell.is_stopped() && !shell.over(), "the shell took the terminal back");
    assert!(is_in_foreground(shell.job.id()));
    // Nothing of the hold is left.
    assert!(hold.release());
}
