//! What `--ask` does: once a class has used up its disk total, the desktop asks the user what is to happen.

use discnice_escape::Foreign;
use discnice_units::Bytes;

use super::bus::{self, Action, Answer, Question};
use super::job::Job;
use crate::classes::Found;
use crate::family::Family;
use crate::output::tell;
use crate::used_up;

const MORE: &str = "more";
const UNBOUNDED: &str = "unbounded";
const END: &str = "end";

/// Asks each time that the total is used up.
#[derive(Debug)]
pub struct Ask {
    /// What is given on top each time: the first total.
    portion: Option<Bytes>,
    /// The total that was asked about last.
    asked: Option<Bytes>,
    question: Option<Question>,
    /// The class, with those of its children.
    family: Family,
}

impl Ask {
    /// Begins with what the class may move in all now.
    pub fn begin(found: &Found) -> Self {
        let (portion, family) = (found.class.disk_total(), Family::of(*found));
        Self { portion, asked: None, question: None, family }
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
            self.question = total.and_then(|_| self.ask(&job.found));
        } else if let Some(question) = &mut self.question {
            let answer = question.answer().transpose();
            if let Some(answer) = answer {
                self.question = None;
                // Without an answer the class is held on, as without a question.
                if let Ok(Answer::Chosen(action)) = answer {
                    self.follow(job, &action);
                }
            }
        }
    }

    fn ask(&self, found: &Found) -> Option<Question> {
        let socket = bus::session();
        let portion = self.portion.map_or_else(String::new, |portion| portion.to_string());
        let more = format!("{portion} more");
        let actions = [(MORE, &*more), (UNBOUNDED, "No bound"), (END, "End the job")]
            .map(|(name, label)| Action { name, label });
        let name = found.name();
        let title = format!("{} is held: it has used up its disk total", Foreign::text(&name));
        let text = "What is to happen?";
        let asked = socket
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
            .and_then(|socket| Question::ask(&socket, &title, text, &actions));
        asked.inspect_err(|error| tell!("discnice: no desktop to ask on (--ask): {error}")).ok()
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
