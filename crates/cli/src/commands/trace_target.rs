//! What `discnice trace` shows the calls of.

use anyhow::bail;
use discnice_escape::Foreign;
use discnice_ledger::trace::Record;
use discnice_watcher::process::{Pinned, pin};

use crate::classes::{self, MappedClass};
use crate::membership;
use crate::running::Running;

/// A class, or one process of it.
pub(super) struct TraceTarget {
    /// The class.
    pub found: MappedClass,
    process: Option<Pinned>,
}

impl TraceTarget {
    /// Finds what a command line names.
    ///
    /// # Errors
    /// There is no such class, or no such process in a class.
    pub fn of(word: &str) -> anyhow::Result<Self> {
        if let Ok(number) = word.parse::<i32>() {
            let pinned = pin(number)?;
            return match membership::class_of(&pinned)? {
                Some(found) => Ok(Self { found, process: Some(pinned) }),
                None => bail!(
                    "process {number} is in no class; see `discnice status`, or attach it first: discnice attach --disk 5M {number}"
                ),
            };
        }
        match classes::named(word)? {
            Some(found) => Ok(Self { found, process: None }),
            None => {
                let similar = classes::similar(word);
                let hint = similar.map_or_else(
                    || "see `discnice status`".to_owned(),
                    |similar| format!("did you mean {similar}?"),
                );
                bail!("no class {}; {hint}", Foreign::text(word));
            }
        }
    }

    /// Whether a record is of it.
    pub fn concerns(&self, record: &Record) -> bool {
        self.process.as_ref().is_none_or(|process| process.id() == record.process)
    }

    /// Whether a process of it is left.
    pub fn runs(&self) -> bool {
        match &self.process {
            Some(process) => !process.has_ended(),
            None => Running::all(&self.found).next().is_some(),
        }
    }
}
