//! `discnice pause` and `discnice resume`: classes and processes stand still, and go on.

use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use discnice_watcher::holding::let_go_of_abandoned;

use crate::output::{say, tell};
use crate::paused::{Chosen, PauseTarget};

const EXAMPLES: &str = "\
Examples:
  discnice pause nightly         all members of class nightly, and what joins it
  discnice pause 4711            process 4711 and its descendants, in a class or not
  discnice resume nightly 4711   resume both";

/// Pause classes or processes until `discnice resume`
///
/// What is paused takes no processor time and does no I/O. It is not stopped by a signal, so its parent or shell does not
/// notice. A signal that it handles is delivered when it resumes; one that it does not handle ends it at once. If policyd is killed, its successor
/// keeps everything paused; without one, everything resumes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Pause {
    /// Names of classes, or PIDs
    #[arg(value_name = "CLASS|PID", required = true, allow_negative_numbers = true,
          value_parser = NonEmptyStringValueParser::new())]
    subjects: Vec<String>,
}

/// Resume paused classes or processes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Resume {
    /// Names of classes, or PIDs
    #[arg(value_name = "CLASS|PID", required = true, allow_negative_numbers = true,
          value_parser = NonEmptyStringValueParser::new())]
    subjects: Vec<String>,
}

impl Pause {
    /// Pauses; when this returns they stand. Exit status 1 if something of them does not.
    ///
    /// # Errors
    /// One line for people: what cannot be paused and why. Nothing was changed then.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let subjects = self.subjects.iter().map(|word| Ok((word, PauseTarget::to_pause(word)?)));
        let (mut all_stand, mut paused) = (true, Vec::new());
        for (word, target) in subjects.collect::<anyhow::Result<Vec<_>>>()? {
            let awake = target.taken()?.stand()?;
            for (process, why) in &awake {
                tell!("discnice: process {process} still runs: {why}");
            }
            all_stand &= awake.is_empty();
            paused.push(word);
        }
        // All stand by now, though this cannot be printed.
        for word in paused {
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
        let_go_of_abandoned();
        let chosen = self.subjects.iter().map(|word| Chosen::to_resume(word));
        for chosen in chosen.collect::<anyhow::Result<Vec<_>>>()? {
            chosen.go_on();
        }
        Ok(ExitCode::SUCCESS)
    }
}
