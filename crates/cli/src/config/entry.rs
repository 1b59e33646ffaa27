//! A rule as a file has it.

use std::path::Path;

use discnice_ledger::policy::Resources;
use discnice_watcher::daemon::rules::ProcessConditions;
use serde::Deserialize;
use toml::Spanned;

use super::place::{self, Wrong};
use crate::classes;
use crate::commands::limits::LimitArgs;

/// A rule as a file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section that begins with [[rule]]")]
pub struct Entry {
    pub(super) r#match: Spanned<ProcessConditions>,
    pub(super) class: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) except: bool,
    pub(super) limits: Option<Spanned<LimitArgs>>,
    /// File and line.
    #[serde(skip)]
    pub(super) place: String,
}

impl Entry {
    /// Checks what stands in it, and notes where it stands.
    ///
    /// # Errors
    /// What is wrong, and where in the text.
    pub(super) fn check(&mut self, text: &str, path: &Path) -> Result<(), Wrong> {
        let (line, _) = place::place(text, self.r#match.span().start);
        self.place = format!("{}:{line}", path.display());
        let wrong = |why: &str| Err((self.r#match.span(), format!("rule: {why}")));
        match (&self.class, self.except) {
            (None, false) => return wrong("no class; add class = \"NAME\", or except = true"),
            (Some(_), true) => return wrong("it has a class and except = true; leave out one"),
            (Some(name), false) => {
                classes::check_name(name.as_ref().as_ref()).map_err(|why| (name.span(), why))?;
            }
            (None, true) if self.limits.is_some() => {
                return wrong("what is left alone has no limits; leave them out");
            }
            (None, true) => {}
        }
        let Some(limits) = &self.limits else { return Ok(()) };
        let wrong = |why: String| Err((limits.span(), format!("rule: limits: {why}")));
        let args = limits.as_ref();
        if args.message().is_some() || args.fleet().is_some() || args.program().is_some() {
            return wrong("only limits; give the rest to [class.NAME]".into());
        }
        if let Some(limit) = args.beyond(Resources::DISK.and(Resources::NETWORK)) {
            let limit = limit.option();
            return wrong(format!("{limit} does not hold for a running process; leave it out"));
        }
        args.check().or_else(|why| wrong(why.to_string()))
    }
}
