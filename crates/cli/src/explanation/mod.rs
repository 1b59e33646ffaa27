//! What would hold a command, or holds a class or a process: by which mechanism, at what rate, what escapes, and what it
//! waits for now. `explain`, `run --dry-run` and `doctor` say it.
//!
//! - [`command`]: before it runs;
//! - [`running`]: classes and processes.

pub mod command;
pub mod others;
pub mod running;
pub mod waiting;

use discnice_ledger::policy::{Limits, Pace, Resource, When};
use discnice_registry::MappedBoard;
use discnice_units::{Bytes, Rate};
use serde::Serialize;

use crate::guest;
use crate::output::Lines;

/// What is said of one command, class or process. What is empty does not apply.
#[derive(Debug, Default, Serialize)]
pub struct Explanation {
    /// What it is about.
    pub about: String,
    /// Its class.
    pub class: Option<String>,
    /// The limits of that, in words.
    pub limits: Vec<String>,
    /// When it is to run, and until when.
    pub when: Vec<String>,
    /// What holds it, or would.
    pub held_by: Vec<String>,
    /// What it waits for now.
    pub waits_for: Vec<String>,
    /// What is not held, or would not be, and why.
    pub not_held: Vec<String>,
}

/// What holds a job that is regulated by its progress.
const PROGRESS: &str = "its progress (--polite)";
/// Columns of the labels.
const LABELS: usize = 10;

impl Explanation {
    /// For people: one line for each thing that is said, with its label before the first of a kind.
    pub fn lines(&self) -> Lines {
        let about = std::slice::from_ref(&self.about);
        let rows = [
            ("about", about),
            ("class", self.class.as_slice()),
            ("limits", &self.limits),
            ("when", &self.when),
            ("held by", &self.held_by),
            ("waits for", &self.waits_for),
            ("not held", &self.not_held),
        ];
        let mut lines = Lines::default();
        for (label, said) in rows {
            for (number, text) in said.iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                lines.push(format_args!("{label:<LABELS$}{text}"));
            }
        }
        lines
    }
}

/// What a resource is called where its rate is told.
pub fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Total => "disk",
        Resource::Read => "disk, reading",
        Resource::Write => "disk, writing",
        Resource::Operations => "disk operations",
        Resource::Metadata => "calls on names",
        Resource::Net => "network",
        Resource::NetUp => "network, sending",
        Resource::NetDown => "network, receiving",
    }
}

/// A threshold in words.
pub fn rate(resource: Resource, rate: Rate) -> String {
    let name = name(resource);
    if resource.is_bytes() {
        format!("{name}: {rate}")
    } else {
        format!("{name}: {} a second", rate.get())
    }
}

/// When rates hold, as the end of a phrase.
pub fn when(when: When) -> &'static str {
    match when {
        When::Busy => " while others are busy",
        When::Always => "",
    }
}

/// Limits in words, one a line.
pub fn limits(limits: &Limits) -> Vec<String> {
    let when = when(limits.when());
    let thresholds = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
    let mut said: Vec<String> = thresholds.map(|one| rate(one, limits.rate(one)) + when).collect();
    if limits.when() == When::Busy
        && let Ok(found) = MappedBoard::find_or_create()
    {
        let busy = found.board.thresholds();
        said.push(format!("others: busy above {} on a disk, until below {}", busy.high, busy.low));
    }
    if let Some(most) = limits.disk_total() {
        said.push(format!("disk: {most} in all"));
    }
    if let Some(least) = limits.at_least() {
        said.push(format!("disk: at least {least} while it gives way"));
    }
    let pace = limits.pace();
    if (pace.policy, pace.window()) != (Pace::DEFAULT.policy, Pace::DEFAULT.window())
        && !said.is_empty()
    {
        said.push(format!("policy: {}, over {}", pace.policy.name(), pace.window()));
    }
    let bounds =
        [("shortest", pace.given_shortest_sleep()), ("longest", pace.given_longest_sleep())];
    let given = bounds.into_iter().filter_map(|(name, sleep)| Some((name, sleep?)));
    said.extend(given.map(|(name, sleep)| format!("waits: the {name} {sleep}")));
    if let Some(bounds) = guest::bounds(limits.memory(), limits.guest()) {
        let [high, low] = [bounds.high, bounds.low].map(Bytes::new);
        said.push(format!(
            "memory: paused above {high} while others wait for memory, until it is down to {low}"
        ));
    }
    if limits.per_child() {
        said.push("children: each has these limits for itself, in a class of its own".into());
    }
    if limits.guest() {
        said.push("processor and disk: idle priority (guest)".into());
    }
    if limits.yields_uplink() {
        said.push("network: gives way to others, by the queue that its connections see".into());
    }
    if limits.protects_cache() {
        said.push("page cache: what it reads is dropped again".into());
    }
    if said.is_empty() {
        said.push("none".into());
    }
    said
}
