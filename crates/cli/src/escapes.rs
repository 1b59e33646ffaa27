//! Which processes of a class no limit held while a job ran, and how much they moved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::commands::member_report;
use crate::family::Family;
use crate::looks::RESTS_PER_LOOK;
use crate::running::Running;

/// Most processes that are remembered.
const MOST: usize = 64;
/// A program that is just being loaded is not held yet; one that is found so again is not held.
const LOOKS: u32 = 2;
/// A program with cold caches takes this long to load its libraries; one that is held by then did not escape.
const LOADING: Duration = Duration::from_secs(1);

/// A process that was not held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Escaped {
    /// Its id.
    pub process: u32,
    /// Its program's name.
    pub name: String,
    /// Why it was not held.
    pub reason: String,
    /// Bytes that the kernel says it moved, both ways, when it was last seen; `null` where that is hidden.
    pub bytes: Option<u64>,
}

/// A process that was not held when it was looked at.
#[derive(Debug)]
struct Seen {
    escaped: Escaped,
    looks: u32,
    since: Instant,
}

/// The processes of a job's classes that were not held.
#[derive(Debug, Default)]
pub struct Escapes {
    found: BTreeMap<u32, Seen>,
    next: Option<Instant>,
}

impl Escapes {
    /// Looks at the classes, unless it did so just now.
    pub fn look(&mut self, family: &Family) {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return;
        }
        for running in family.classes().flat_map(Running::all) {
            match member_report::escape(&running) {
                Some(reason) => self.add(escaped(&running, reason), begun),
                None => self.held(running.member.process(), begun),
            }
        }
        let taken = begun.elapsed().max(Duration::from_millis(1));
        self.next = Some(Instant::now() + taken * RESTS_PER_LOOK);
    }

    fn add(&mut self, escaped: Escaped, now: Instant) {
        let known = self.found.get(&escaped.process);
        let (looks, since) = known.map_or((1, now), |known| (known.looks + 1, known.since));
        if looks > 1 || self.found.len() < MOST {
            self.found.insert(escaped.process, Seen { escaped, looks, since });
        }
    }

    /// Forgets a process that was only being loaded when it was seen.
    fn held(&mut self, process: u32, now: Instant) {
        if self.found.get(&process).is_some_and(|known| now.duration_since(known.since) < LOADING) {
            self.found.remove(&process);
        }
    }

    /// All that were not held, by their ids.
    pub fn list(&self) -> Vec<Escaped> {
        let escaped = self.found.values().filter(|one| one.looks >= LOOKS);
        escaped.map(|one| one.escaped.clone()).collect()
    }
}

fn escaped(running: &Running<'_>, reason: String) -> Escaped {
    Escaped {
        process: running.member.process(),
        name: running.name(),
        reason,
        bytes: running.seen(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Escaped {
        Escaped {
            process: 7,
            name: "tar".into(),
            reason: "has not loaded the library".into(),
            bytes: Some(1),
        }
    }

    /// Tells what is listed after looks at a process that is not held, and one at which it is held, `then`.
    fn listed_after(looks: &[u64], then: u64) -> usize {
        let (mut escapes, start) = (Escapes::default(), Instant::now());
        for &at in looks {
            escapes.add(one(), start + Duration::from_millis(at));
        }
        escapes.held(7, start + Duration::from_millis(then));
        escapes.list().len()
    }

    #[test]
    fn a_program_that_is_being_loaded_has_not_escaped() {
        assert_eq!(listed_after(&[0], 20), 0);
        assert_eq!(listed_after(&[0, 20, 40, 300], 320), 0);
    }

    #[test]
    fn a_program_that_is_held_late_had_escaped() {
        assert_eq!(listed_after(&[0, 20, 40, 1_500], 1_520), 1);
    }

    #[test]
    fn one_that_is_never_held_has_escaped() {
        let mut escapes = Escapes::default();
        let start = Instant::now();
        escapes.add(one(), start);
        assert!(escapes.list().is_empty(), "at the first look it may be loading");
        escapes.add(one(), start + Duration::from_millis(20));
        assert_eq!(escapes.list().len(), 1);
    }
}
