//! The program that is a class's policy: started, asked, and listened to, never for longer than is said.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

/// No answer is as long as this.
const LINE: usize = 4096;

/// A program that runs.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    questions: ChildStdin,
    answers: ChildStdout,
    /// What it said of a line that has not ended.
    said: Vec<u8>,
}

impl Program {
    /// Starts it, in a process group of its own. What it says to its standard error output is not read.
    ///
    /// # Errors
    /// It cannot be executed, or descriptors are short.
    pub(super) fn start(words: &[String]) -> io::Result<Self> {
        let (name, arguments) = words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(name);
        command.args(arguments).env_remove("DISCNICE").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(questions), Some(answers)) = pipes else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        let program = Self { child, questions, answers, said: Vec::new() };
        for pipe in [program.questions.as_fd(), program.answers.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(program)
    }

    /// Asks a question, a whole line.
    ///
    /// # Errors
    /// It has ended, or has not read what it was asked before.
    pub(super) fn ask(&mut self, line: &str) -> io::Result<()> {
        // A pipe takes a line of less than 4096 bytes whole, or not at all.
        self.questions.write_all(line.as_bytes())
    }

    /// Waits for an answer; `None` if there was none in time.
    ///
    /// # Errors
    /// It has ended, or says what is no line.
    pub(super) fn hear(&mut self, time: Duration) -> io::Result<Option<Vec<u8>>> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let rest = self.said.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.said, rest)));
            }
            if self.said.len() >= LINE {
                return Err(ErrorKind::InvalidData.into());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_readable(self.answers.as_fd(), left) {
                return Ok(None);
            }
            let mut bytes = [0; LINE];
            match self.answers.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => self.said.extend_from_slice(bytes.get(..more).unwrap_or_default()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // With what a wrapper has started. It may have ended already; it is our child, with that number, until we have waited for it.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_readable(descriptor: BorrowedFd<'_>, time: Duration) -> bool {
    let mut one = [PollFd::new(&descriptor, PollFlags::IN)];
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    poll(&mut one, Some(&time)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::start(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()]).unwrap()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn lines_are_asked_and_answered() {
        let mut program = shell("while read -r line; do echo \"<$line>\"; done");
        for word in ["one", "two"] {
            program.ask(&format!("{word}\n")).unwrap();
            let answer = program.hear(LONG).unwrap().unwrap();
            assert_eq!(answer, format!("<{word}>\n").as_bytes());
        }
        assert!(program.hear(Duration::from_millis(5)).unwrap().is_none(), "nothing was asked");
    }

    #[test]
    fn one_that_ends_or_says_no_line_is_an_error() {
        assert!(Program::start(&["/no/such/program".to_owned()]).is_err());
        assert!(Program::start(&[]).is_err());
        assert!(shell("exit 0").hear(LONG).is_err());
        assert!(shell("head -c 100000 /dev/zero; sleep 60").hear(LONG).is_err());
    }

    #[test]
    fn what_it_started_ends_with_it() {
        use discnice_processes::tree::every_process;
        use discnice_sys::procfs;
        let program = shell("sleep 1000 & echo; wait");
        let group = program.child.id();
        let living = || {
            let found = every_process().filter_map(procfs::stat);
            found.filter(|stat| stat.group == group && !stat.has_ended()).count()
        };
        let deadline = Instant::now() + LONG;
        while living() != 2 {
            assert!(Instant::now() < deadline, "it starts nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(program);
        while living() != 0 {
            assert!(Instant::now() < deadline, "{} are left", living());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn one_that_does_not_read_is_not_waited_for() {
        let mut program = shell("sleep 60");
        let line = format!("{}\n", "x".repeat(4000));
        let refused = (0..1000).map(|_| program.ask(&line)).find_map(Result::err);
        assert_eq!(refused.unwrap().kind(), ErrorKind::WouldBlock);
    }
}
