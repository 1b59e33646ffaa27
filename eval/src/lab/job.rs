//! A program under test: its own process group, its end awaited without polling, its complaint
//! kept, its whole group killed when it is dropped or a stop is requested.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::proc::Calls;
use crate::stop::{self, Doomed};

/// A started program.
pub struct Job {
    child: Child,
    doomed: Option<Doomed>,
    words: String,
    complaints: File,
    started: Instant,
}

impl Job {
    /// Starts `command` in a process group of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        stop::check()?;
        let words = words(command);
        let complaints = tempfile::tempfile().context("cannot make a temporary file")?;
        let started = Instant::now();
        let child = command
            .process_group(0)
            .stderr(complaints.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot run {words}"))?;
        let doomed = Some(Doomed::new(Pid::from_child(&child)));
        Ok(Self { child, doomed, words, complaints, started })
    }

    /// The process group, for reading its counters.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.child.id()
    }

    /// The command as typed.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Standard input of the program, if it was piped.
    pub fn take_input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for the program's success; returns how many seconds it took.
    ///
    /// # Errors
    /// It fails (its last words are given), or a stop was requested.
    pub fn finish(mut self) -> anyhow::Result<f64> {
        let status = self.reap()?;
        let seconds = self.started.elapsed().as_secs_f64();
        stop::check()?;
        if !status.success() {
            bail!("{} failed ({status}): {}", self.words, self.last_words());
        }
        Ok(seconds)
    }

    /// As [`Job::finish`], with what the program and its children called for.
    ///
    /// # Errors
    /// As [`Job::finish`].
    pub fn finish_counted(mut self) -> anyhow::Result<(f64, Calls)> {
        self.wait()?;
        // A process that has ended keeps its counts, with those of its children, until it is reaped.
        let calls = Calls::of(self.group());
        Ok((self.finish()?, calls))
    }

    /// As [`Job::finish`], but kills the group and returns `None` once `give_up` says so.
    ///
    /// # Errors
    /// As [`Job::finish`].
    pub fn finish_unless(
        mut self,
        mut give_up: impl FnMut() -> bool,
    ) -> anyhow::Result<Option<f64>> {
        const LOOK: Duration = Duration::from_millis(5);
        let pid = Pid::from_child(&self.child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while rustix::process::waitid(WaitId::Pid(pid), options)
            .context("cannot wait for a program")?
            .is_none()
        {
            if give_up() {
                if let Some(doomed) = &self.doomed {
                    doomed.kill();
                }
                return self.reap().map(|_| None);
            }
            std::thread::sleep(LOOK);
        }
        self.finish().map(Some)
    }

    /// Kills the group; returns whether the program was still running, as it should have been.
    ///
    /// # Errors
    /// It had failed before.
    pub fn end(mut self) -> anyhow::Result<bool> {
        if let Some(status) = self.child.try_wait()? {
            // Children may have survived their leader.
            self.doomed.take();
            if !status.success() {
                bail!("{} failed ({status}): {}", self.words, self.last_words());
            }
            return Ok(false);
        }
        if let Some(doomed) = &self.doomed {
            doomed.kill();
        }
        self.reap()?;
        Ok(true)
    }

    /// Waits; the group is given up while its number cannot have been reused.
    fn reap(&mut self) -> anyhow::Result<ExitStatus> {
        self.wait()?;
        self.doomed.take();
        self.child.wait().context("cannot wait for a program")
    }

    /// Waits for the end without taking it.
    fn wait(&mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(error) = rustix::process::waitid(WaitId::Pid(pid), options) {
            if error != rustix::io::Errno::INTR {
                return Err(error).context("cannot wait for a program");
            }
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let mut text = String::new();
        let mut file = &self.complaints;
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        match (read, text.trim().lines().last()) {
            (Ok(_), Some(line)) => line.to_owned(),
            _ => "it says nothing".to_owned(),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(doomed) = &self.doomed {
            doomed.kill();
            // No caller is left to tell; the child is gone either way.
            let _ = self.reap();
        }
    }
}

/// Program and arguments as one would type them.
fn words(command: &Command) -> String {
    let mut text = quoted(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&quoted(&argument.to_string_lossy()));
    }
    text
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_failure_and_end() {
        let seconds = Job::start(Command::new("sleep").arg("0.05")).expect("starts").finish();
        assert!((0.05..5.0).contains(&seconds.expect("sleep succeeds")));
        let error = Job::start(Command::new("ls").arg("/no/such")).expect("starts").finish();
        assert!(format!("{:#}", error.expect_err("ls fails")).contains("/no/such"));
        let job = Job::start(Command::new("sleep").arg("60")).expect("starts");
        assert!(job.end().expect("it is killed"));
        assert!(Job::start(&mut Command::new("/no/such/program")).is_err());
    }

    /// Counts the processes of a group, without zombies that have not been reaped yet.
    fn living(group: u32) -> usize {
        crate::proc::of_group(group).filter(|(_, stat)| stat.state != 'Z').count()
    }

    #[test]
    fn a_dropped_job_takes_its_children_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 61 & sleep 62"]);
        let job = Job::start(&mut command).expect("starts");
        let group = job.group();
        assert!(living(group) > 0, "nothing was started");
        drop(job);
        let gone = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            living(group) == 0
        });
        assert!(gone, "the group lives on");
    }

    #[test]
    fn words_can_be_typed_again() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'a b'", ""]);
        assert_eq!(words(&command), r"sh -c 'echo '\''a b'\''' ''");
    }
}
