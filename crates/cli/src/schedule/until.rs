//! What happens to a job at a moment.

use clap::ValueEnum;

use super::calendar::clock;
use super::job::Job;
use super::wall_time::WallTime;
use crate::output::tell;

/// What happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Then {
    /// Pause the job, as `discnice pause` does.
    Stop,
    /// Ask the job to end, by SIGTERM.
    #[default]
    Term,
    /// Let the job go on without limits.
    Continue,
}

/// A moment, and what happens then.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// When.
    pub at: WallTime,
    /// What.
    pub then: Then,
    /// Whether it has happened.
    pub is_over: bool,
}

impl Until {
    /// Ends, pauses or frees the job once its time has come.
    pub fn look(&mut self, job: &Job) {
        if self.is_over || !self.at.has_come() {
            return;
        }
        self.is_over = true;
        let (now, name) = (clock(), job.name());
        match self.then {
            Then::Term => {
                tell!("discnice: it is {now}: the job is asked to end (--until)");
                job.end();
            }
            Then::Stop => {
                tell!(
                    "discnice: it is {now}: the job is paused (--until); `discnice resume {name}` lets it go on"
                );
                job.pause();
            }
            Then::Continue => {
                tell!("discnice: it is {now}: the job goes on without limits (--until)");
                job.lift();
            }
        }
    }
}
