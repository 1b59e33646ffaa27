//! Processes that may be about to trace others: those that were born lately and name a process by its number.
//!
//! A process has one tracer at a time, and holding is tracing, so that a debugger would be refused while its process is held.
//! Nothing tells of a refused attempt. What tells before it is the command line: `strace -p 4711`, `gdb -p 4711`,
//! `dlv attach 4711`. So the command lines of newcomers are read, a few times in their first second, as each begins as a
//! copy of its parent; no names of debuggers are known here. A debugger that is told the number later, by a command of
//! its own, is not found. Only newcomers of this user and of the superuser are read: no other user may trace the process,
//! or have it let go.

use discnice_units::Moment;

use crate::process::command_line;
use crate::tuning;

/// So many numbers in a command line are read.
const NUMBERS: usize = 8;

/// A process that was born lately.
#[derive(Debug)]
struct Newborn {
    id: u32,
    found: Moment,
    due: Moment,
    names: Vec<u32>,
}

/// Newcomers that may be debuggers.
#[derive(Debug, Default)]
pub(crate) struct Debuggers(Vec<Newborn>);

impl Debuggers {
    /// Notes those that were found new, or execute a program.
    pub fn note(&mut self, now: Moment, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.0.retain(|known| known.id != id);
            if self.0.len() < tuning::holding::DEBUGGERS {
                self.0.push(Newborn { id, found: now, due: now, names: Vec::new() });
            }
        }
    }

    /// Reads the command lines that are due.
    pub fn look(&mut self, now: Moment) {
        self.0.retain_mut(|newborn| now < newborn.due || newborn.look(now));
    }

    /// When one is due.
    pub fn next(&self) -> Moment {
        self.0.iter().map(|newborn| newborn.due).min().unwrap_or(Moment::NEVER)
    }

    /// The processes that living newcomers name.
    pub fn named(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|newborn| newborn.names.iter().copied())
    }
}

impl Newborn {
    /// Reads its command line; false if it need not be looked at any more.
    fn look(&mut self, now: Moment) -> bool {
        let Some(line) = command_line(self.id) else { return false };
        let numbers = numbers(&line).filter(|id| *id != self.id).take(NUMBERS);
        let living = numbers.filter_map(process_of);
        self.names.clear();
        self.names.extend(living);
        // `discnice attach 4711` traces nothing that is held already.
        if !self.names.is_empty()
            && (!may_trace(self.id) || crate::process::is_this_program(self.id))
        {
            return false;
        }
        let age = now.since(self.found);
        let apart = if self.names.is_empty() {
            age.max(tuning::holding::DEBUGGER_FIRST_LOOK)
        } else {
            tuning::holding::DEBUGGER_LOOK.min(age.max(tuning::holding::DEBUGGER_FIRST_LOOK))
        };
        self.due = now.plus(apart);
        age < tuning::holding::DEBUGGER_AGE
    }
}

/// Whether a process was started by this user or the superuser, whatever rights its program gives it.
fn may_trace(id: u32) -> bool {
    let user = crate::process::real_user(id.cast_signed());
    user.is_some_and(|user| user == 0 || user == discnice_sys::process::user())
}

/// The whole numbers in a command line that can be those of processes.
fn numbers(line: &[u8]) -> impl Iterator<Item = u32> {
    let runs = line.split(|byte| !byte.is_ascii_digit()).filter(|run| !run.is_empty());
    let parsed = runs.filter_map(|run| std::str::from_utf8(run).ok()?.parse().ok());
    parsed.filter(|number| *number > 1)
}

/// The process that a thread belongs to; `None` if there is no such thread.
fn process_of(thread: u32) -> Option<u32> {
    crate::process::leader(i32::try_from(thread).ok()?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use discnice_requirements::skip;

    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn numbers_stand_anywhere_in_a_command_line() {
        let all = |line: &[u8]| numbers(line).collect::<Vec<_>>();
        assert_eq!(all(b"strace\x00-p\x004711\x00"), [4711]);
        assert_eq!(all(b"x\x00-p4711\x00--pid=12,13\x00/proc/14/mem\x00"), [4711, 12, 13, 14]);
        assert_eq!(all(b"x\x000\x001\x0099999999999\x00-\x00"), [0; 0]);
    }

    #[test]
    fn a_newcomer_names_processes_while_it_lives() {
        let me = std::process::id();
        let script = format!("read line; : {me}");
        let mut child =
            Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let mut debuggers = Debuggers::default();
        debuggers.note(Moment::FIRST, [child.id()].into_iter());
        std::thread::sleep(std::time::Duration::from_millis(50));
        debuggers.look(Moment(1));
        assert_eq!(debuggers.named().collect::<Vec<_>>(), [me]);
        assert!(debuggers.next() <= Moment(1).plus(tuning::holding::DEBUGGER_LOOK));
        child.kill().unwrap();
        child.wait().unwrap();
        debuggers.look(debuggers.next());
        assert_eq!((debuggers.named().count(), debuggers.next()), (0, Moment::NEVER));
    }

    #[test]
    fn processes_of_other_users_name_nothing() {
        let script = format!("read line; : {}", std::process::id());
        let words = ["--reuid", "65534", "--clear-groups", "sh", "-c", &script];
        let child =
            Command::new("setpriv").args(words).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else { skip!("no setpriv") };
        std::thread::sleep(std::time::Duration::from_millis(100));
        let is_other = crate::process::real_user(child.id().cast_signed()) == Some(65534);
        let mut debuggers = Debuggers::default();
        debuggers.note(Moment::FIRST, [child.id()].into_iter());
        debuggers.look(Moment(1));
        let (named, next) = (debuggers.named().count(), debuggers.next());
        child.kill().unwrap();
        child.wait().unwrap();
        if !is_other || discnice_sys::process::user() == 65534 {
            skip!("only the superuser is two users");
        }
        assert_eq!((named, next), (0, Moment::NEVER));
    }

    #[test]
    fn this_program_is_no_debugger() {
        let mut debuggers = Debuggers::default();
        debuggers.note(Moment::FIRST, [std::process::id()].into_iter());
        debuggers.look(Moment::FIRST);
        assert_eq!(debuggers.named().count(), 0);
    }

    #[test]
    fn it_is_a_newcomer_for_a_second() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut debuggers = Debuggers::default();
        debuggers.note(Moment::FIRST, [child.id()].into_iter());
        let mut looks = 0;
        while debuggers.next() < Moment::NEVER {
            let now = debuggers.next();
            debuggers.look(now);
            looks += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((8..=300).contains(&looks), "{looks}");
    }
}
