//! The user's own policy of one class: a thread asks its program, and writes what it says into the class's memory.
//!
//! No call waits for it. A program that hangs or ends costs its advice alone, which ends by itself.

#![allow(unsafe_code, reason = "the class is unmapped in the end")]

mod program;
mod protocol;

use std::thread::{self, JoinHandle};

use discnice_ledger::advice::Health;
use discnice_ledger::policy::Choice;
use discnice_processes::fork;
use discnice_registry::{MappedClass, class};
use discnice_sys::block::BlockId;
use discnice_sys::{futex, process, time};
use discnice_units::Moment;
use program::Program;

use crate::daemon::tuning;
use crate::process::is_colleague;

/// The programs that are policies of classes, by name; `None` for a class that the configuration gives none.
pub type Programs = fn(&str) -> Result<Option<Vec<String>>, String>;

/// The stack of the thread: it reads the configuration.
const STACK: usize = 1 << 20;

/// A thread that asks the program of a class as long as that has members.
#[derive(Debug)]
pub(crate) struct Adviser {
    pub(crate) block: BlockId,
    thread: JoinHandle<()>,
}

impl Adviser {
    /// Begins to ask the program of the class in this block; `None` where no thread is to be had.
    pub(crate) fn start(block: BlockId, programs: Programs) -> Option<Self> {
        let mapped = class::attach(block)?;
        let work = move || {
            Asker { mapped, programs, program: None, due: Moment::FIRST, late: 0 }.ask_all();
            // SAFETY: the asker is gone, and nothing else refers to this mapping.
            unsafe { mapped.unmap() };
        };
        let thread = fork::thread("policy", STACK, work).ok()?;
        Some(Self { block, thread })
    }

    /// Returns true if it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// What the thread knows.
struct Asker {
    mapped: MappedClass,
    programs: Programs,
    program: Option<Program>,
    /// When to start it again.
    due: Moment,
    /// Late answers in a row.
    late: u32,
}

impl Asker {
    fn ask_all(&mut self) {
        let class = self.mapped.class;
        let mut peopled = time::now();
        while class.pace().policy == Choice::Program {
            let now = time::now();
            if class.living(process::exists).next().is_some() {
                peopled = now;
            } else if now > peopled.plus(tuning::programs::EMPTY) {
                break;
            }
            // Another policyd of this user, in another session, may ask.
            if class.advice().claim(process::id(), is_colleague) {
                let health = self.step();
                class.advice().note_health(health);
            }
            thread::sleep(tuning::programs::INTERVAL);
        }
        self.program = None;
        class.advice().note_health(Health::Unasked);
        class.advice().release(process::id());
    }

    /// Asks once.
    fn step(&mut self) -> Health {
        if self.program.is_none() && !self.starts() {
            return Health::Ended;
        }
        let (class, name) = (self.mapped.class, self.mapped.name());
        let question = protocol::question(class, &name, time::now());
        let Some(program) = &mut self.program else { return Health::Ended };
        // One question at a time: what is late answers the last one.
        let asked = if self.late == 0 { program.ask(&question) } else { Ok(()) };
        match asked.and_then(|()| program.hear(tuning::programs::PATIENCE)) {
            Ok(Some(line)) => {
                self.late = 0;
                self.take(&line)
            }
            Ok(None) => {
                self.late += 1;
                if self.late >= tuning::programs::LATE {
                    self.give_up();
                }
                Health::Silent
            }
            Err(error) => {
                self.give_up();
                let is_wrong = error.kind() == std::io::ErrorKind::InvalidData;
                if is_wrong { Health::Wrong } else { Health::Ended }
            }
        }
    }

    //= discnice/4.1-own-policy
    /// Puts an answer in force.
    fn take(&self, line: &[u8]) -> Health {
        let Some((rates, lasts)) = protocol::answer(line) else { return Health::Wrong };
        let (class, now) = (self.mapped.class, time::now());
        if class.advise(now, &rates, now.plus(lasts)) {
            futex::wake_all(class.changes());
        }
        Health::Answers
    }

    /// Whether the program runs now.
    fn starts(&mut self) -> bool {
        let now = time::now();
        if now < self.due {
            return false;
        }
        self.due = now.plus(tuning::programs::RETRY);
        let words = (self.programs)(&self.mapped.name()).ok().flatten();
        self.program = words.and_then(|words| Program::start(&words).ok());
        self.program.is_some()
    }

    fn give_up(&mut self) {
        self.program = None;
        self.late = 0;
    }
}
