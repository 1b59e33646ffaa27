//! What `--ask` does: once a class has used up its disk total, the desktop asks the user what is to happen.

use std::io;
use std::time::{Duration, Instant};

use discnice_escape::Foreign;
use discnice_units::Bytes;

use super::bus::{self, Action, Answer, Question};
use super::job::Job;
use crate::classes::MappedClass;
use crate::family::Family;
use crate::output::tell;
use crate::used_up;

const MORE: &str = "more";
const UNBOUNDED: &str = "unbounded";
const END: &str = "end";

/// A desktop that is not there may come, as when a user logs in, or its service is started anew.
const AGAIN: Duration = Duration::from_secs(5);

/// Asks each time that the total is used up.
#[derive(Debug)]
pub struct Ask {
    /// What is given on top each time: the first total.
    portion: Option<Bytes>,
    /// The total that was asked about last.
    asked: Option<Bytes>,
    question: Option<Question>,
    /// When to ask, if no question is shown.
    ask_at: Option<Instant>,
    /// Set once the user was told that there is no desktop to ask on about this total.
    is_told: bool,
    /// The class, with those of its children.
    family: Family,
}

impl Ask {
    /// Begins with what the class may move in all now.
    pub fn begin(found: &MappedClass) -> Self {
        let (portion, family) = (found.class.disk_total(), Family::of(*found));
        Self { portion, asked: None, question: None, ask_at: None, is_told: false, family }
    }

    /// Asks once the total is used up, and does what was answered.
    pub fn look(&mut self, job: &Job) {
        // Of children each may move as much: the first that has asks for all.
        self.family.look();
        let total = self.family.classes().find_map(used_up::total);
        if total != self.asked {
            // The one before may still be shown, if the class got more in another way.
            self.question = None;
            self.asked = total;
            self.ask_at = total.map(|_| Instant::now());
            self.is_told = false;
        }
        match self.hear(&job.found) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                self.question = None;
                // Without an answer the class is held on, as without a question.
                if let Answer::Chosen(action) = answer {
                    self.follow(job, &action);
                }
            }
            Err(error) => self.ask_later(&error),
        }
    }

    /// Asks if it is time to; returns what was answered by now.
    fn hear(&mut self, found: &MappedClass) -> io::Result<Option<Answer>> {
        if self.ask_at.take_if(|at| *at <= Instant::now()).is_some() {
            self.question = Some(self.ask(found)?);
        }
        self.question.as_mut().map_or(Ok(None), Question::answer)
    }

    /// There is no desktop, or none any more.
    fn ask_later(&mut self, error: &io::Error) {
        self.question = None;
        self.ask_at = Some(Instant::now() + AGAIN);
        if !std::mem::replace(&mut self.is_told, true) {
            let every = AGAIN.as_secs();
            tell!(
                "discnice: no desktop to ask on (--ask): {error}; it is looked for every {every} s"
            );
        }
    }

    fn ask(&self, found: &MappedClass) -> io::Result<Question> {
        let socket = bus::session().ok_or(io::ErrorKind::NotFound)?;
        let portion = self.portion.map_or_else(String::new, |portion| portion.to_string());
        let more = format!("{portion} more");
        let actions = [(MORE, &*more), (UNBOUNDED, "No bound"), (END, "End the job")]
            .map(|(name, label)| Action { name, label });
        let name = found.name();
        let title = format!("{} is held: it has used up its disk total", Foreign::text(&name));
        let text = "What is to happen?";
        Question::ask(&socket, &title, text, &actions)
    }

    fn follow(&self, job: &Job, action: &str) {
        let found = &job.found;
        let name = found.name();
        let shown = Foreign::text(&name);
        match action {
            MORE => {
                let total = found.class.disk_total().zip(self.portion);
                let total = total.map(|(total, portion)| total.plus(portion));
                tell!("discnice: class {shown} may move more, as answered on the desktop");
                job.set_limits(found.class.limits().with_disk_total(total));
            }
            UNBOUNDED => {
                tell!(
                    "discnice: class {shown} has no disk total any more, as answered on the desktop"
                );
                job.set_limits(found.class.limits().with_disk_total(None));
            }
            END => {
                tell!("discnice: the job is asked to end, as answered on the desktop");
                job.end();
            }
            _ => {}
        }
    }
}
