//! Attaching processes: some to attach, the words for it, and what is said of a refusal.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::class::Class;
use crate::process::{Outcome, run};
use crate::product;

/// Waits until a process executes the program of this name: one that changes its user hides what it does until then, and is
/// refused as another user's.
///
/// # Panics
/// It does not, for ten seconds.
pub fn until_executes(process: &Child, name: &str) {
    let comm = format!("/proc/{}/comm", process.id());
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs::read_to_string(&comm).unwrap_or_default().trim_end() != name {
        assert!(Instant::now() < deadline, "it does not execute {name}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that sleeps.
#[derive(Debug)]
pub struct Sleeper(pub Child);

impl Sleeper {
    /// Starts sleep(1) by this command.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        Self(command.arg("100").stdin(Stdio::null()).spawn().expect("sleep(1)")).executing("sleep")
    }

    /// Executes the program of this name, which is awaited.
    ///
    /// # Panics
    /// As [`until_executes`].
    #[must_use]
    pub fn executing(self, name: &str) -> Self {
        until_executes(&self.0, name);
        self
    }

    /// An ordinary user's.
    #[must_use]
    pub fn ordinary() -> Self {
        Self::start(product::as_user("sleep"))
    }

    /// Its number, as a word of a command.
    #[must_use]
    pub fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `discnice` with these words, by way of another program.
///
/// # Panics
/// `way` is empty, or the command hangs.
#[must_use]
pub fn by_way_of(way: &[&str], words: &[&str]) -> Outcome {
    let program = product::program();
    let (first, others) = way.split_first().expect("a program");
    run(product::as_user(first).args(others).arg(program).args(words))
}

/// One line that says why, status 125.
///
/// # Panics
/// It is not so.
pub fn assert_refused(outcome: &Outcome, why: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(complaint.starts_with("discnice: ") && complaint.lines().count() == 1, "{outcome:?}");
    assert!(complaint.contains(why), "{outcome:?}");
}

/// Words that attach the process with this number to the class, at 1 MiB/s.
#[must_use]
pub fn attach<'a>(class: &'a Class, id: &'a str) -> [&'a str; 7] {
    ["attach", "--background", "--class", class.name(), "--disk", "1M", id]
}
