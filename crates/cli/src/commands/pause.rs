//! `discnice pause` and `discnice resume`: classes and processes stand still, and go on.

use std::process::ExitCode;

use clap::Args;

use super::paused::{Chosen, Subject};
use crate::output::{say, tell};

const EXAMPLES: &str = "\
Examples:
  discnice pause nightly         all of class nightly stands, and what joins it
  discnice pause 4711            process 4711 and its descendants, in a class or not
  discnice resume nightly 4711   both go on";

/// Have classes or processes stand still until `discnice resume`
///
/// They stand without a signal, so that no shell and no parent sees it. What is paused takes no processor time and moves
/// nothing; signals that it handles wait, others end it. If policyd is killed, its successor goes on holding; if none is left, all goes on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Pause {
    /// Names of classes, or PIDs
    #[arg(value_name = "CLASS|PID", required = true, allow_negative_numbers = true)]
    subjects: Vec<String>,
}

/// Let paused classes or processes go on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Resume {
    /// Names of classes, or PIDs
    #[arg(value_name = "CLASS|PID", required = true, allow_negative_numbers = true)]
    subjects: Vec<String>,
}

impl Pause {
    /// Pauses; when this returns they stand. Exit status 1 if something of them does not.
    ///
    /// # Errors
    /// One line for people: what cannot be paused and why. Nothing was changed then.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let subjects = self.subjects.iter().map(|word| Ok((word, Subject::to_pause(word)?)));
        let mut all_stand = true;
        for (word, subject) in subjects.collect::<anyhow::Result<Vec<_>>>()? {
            let awake = subject.taken()?.stand()?;
            for (process, why) in &awake {
                tell!("discnice: process {process} does not stand: {why}");
            }
            all_stand &= awake.is_empty();
            say!("{word} is paused; `discnice resume {word}` lets it go on")?;
        }
        Ok(if all_stand { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Resume {
    /// Lets them go on; when this returns they run.
    ///
    /// # Errors
    /// One line for people: what is not paused. Nothing was changed then.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let chosen = self.subjects.iter().map(|word| Chosen::to_resume(word));
        for chosen in chosen.collect::<anyhow::Result<Vec<_>>>()? {
            chosen.go_on();
        }
        Ok(ExitCode::SUCCESS)
    }
}
