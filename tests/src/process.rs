//! Running a command to its end.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes so long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look whether a command has ended, or something is so.
const LOOK: Duration = Duration::from_millis(2);

/// What is waited for comes to be within this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something is so.
///
/// # Panics
/// It never is, in words.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    within(PATIENCE, what, is_so);
}

/// Waits until something is so, but no longer than that.
///
/// # Panics
/// It is not by then, in words.
pub fn within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(LOOK);
    }
}

/// Everything by which two runs of a command can be told apart, apart from time.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What it printed.
    pub output: Vec<u8>,
    /// What it complained.
    pub errors: Vec<u8>,
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "status {:?}, signal {:?}", self.status, self.signal)?;
        writeln!(f, "-- output\n{}", String::from_utf8_lossy(&self.output))?;
        write!(f, "-- errors\n{}", String::from_utf8_lossy(&self.errors))
    }
}

impl Outcome {
    /// What it printed, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// What it complained, as text.
    #[must_use]
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }

    /// Itself, after checking that the command succeeded.
    ///
    /// # Panics
    /// It did not.
    pub fn succeeded(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }
}

/// Runs the command with no input to its end.
///
/// # Panics
/// It cannot be started, or it hangs; then all of its process group is killed.
#[must_use]
pub fn run(command: &mut Command) -> Outcome {
    run_within(command, TIMEOUT).unwrap_or_else(|| panic!("{command:?} hangs"))
}

/// The processes with this entry in their environment, as far as it may be read.
///
/// # Panics
/// There is no `/proc`.
#[must_use]
pub fn with_in_environment(entry: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let ids = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
    let has_it = |id: &u32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
    };
    ids.filter(has_it).collect()
}

/// Returns the child of a process that has one, as the worker of a policyd.
#[must_use]
pub fn only_child(id: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    children.ok()?.split_whitespace().next()?.parse().ok()
}

/// Waits until a process has a child; returns that.
///
/// # Panics
/// It gets none.
#[must_use]
pub fn await_child(id: u32) -> u32 {
    let mut child = None;
    until("it has no child", || {
        child = only_child(id);
        child.is_some()
    });
    child.expect("it was there")
}

/// Runs a command to its end; `None` if it takes longer than `time`.
///
/// # Panics
/// It cannot be started.
#[must_use]
pub fn run_within(command: &mut Command, time: Duration) -> Option<Outcome> {
    let (output, errors) = (scratch(), scratch());
    let handle = |file: &File| Stdio::from(file.try_clone().expect("a descriptor"));
    command.stdin(Stdio::null()).stdout(handle(&output)).stderr(handle(&errors));
    let mut child = command.process_group(0).spawn().expect("the command starts");
    let status = wait_within(&mut child, time)?;
    Some(Outcome {
        output: contents(output),
        errors: contents(errors),
        status: status.code(),
        signal: status.signal(),
    })
}

/// Waits for a child that leads a process group of its own.
///
/// # Panics
/// It hangs.
pub fn wait(child: &mut Child, what: &impl fmt::Debug) -> ExitStatus {
    wait_within(child, TIMEOUT).unwrap_or_else(|| panic!("{what:?} hangs"))
}

/// Waits for the child; `None` if it takes longer than `time`, and then all of its process group is
/// killed.
fn wait_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return Some(status);
        }
        if started.elapsed() > time {
            kill_group(child.id());
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

/// A process group that is killed when this value is dropped.
#[derive(Debug)]
pub struct Group(Child);

impl Group {
    /// Starts a command without input in a process group of its own.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let alone = command.stdin(Stdio::null()).process_group(0);
        Self(alone.spawn().expect("the command starts"))
    }

    /// As [`Self::start`], with all output discarded.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_silent(command: &mut Command) -> Self {
        Self::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }
}

impl Deref for Group {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Group {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(self.0.id());
        let _ = self.0.wait();
    }
}

/// Kills a process group that a test started.
pub fn kill_group(leader: u32) {
    send(-leader.cast_signed(), libc::SIGKILL);
}

/// Sends a signal to a process, or to a group if the id is negative; kill(2).
#[allow(unsafe_code, reason = "kill(2) has no safe wrapper in the standard library")]
pub fn send(id: i32, signal: i32) {
    // SAFETY: numbers only. A process that is gone already is none of our concern.
    unsafe { libc::kill(id, signal) };
}

fn scratch() -> File {
    tempfile::tempfile().expect("a temporary file")
}

fn contents(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a temporary file");
    bytes
}
