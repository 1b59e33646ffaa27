//! Which processes of a class no limit held while a job ran, and how much they moved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::classes::Found;
use crate::commands::member_report;
use crate::running::Running;

/// So many are remembered.
const MOST: usize = 64;
/// A program that is just being loaded is not held yet; one that is found so again is not held.
const LOOKS: u32 = 2;
/// Looking takes at most one part in so many of the time: a class may have thousands of members.
const PART: u32 = 20;

/// One process.
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
    #[serde(skip)]
    looks: u32,
}

/// Those of one class.
#[derive(Debug, Default)]
pub struct Escapes {
    found: BTreeMap<u32, Escaped>,
    next: Option<Instant>,
}

impl Escapes {
    /// Looks at the class, unless it did so just now.
    pub fn look(&mut self, found: &Found) {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return;
        }
        for running in Running::all(found) {
            if let Some(reason) = member_report::escape(&running) {
                self.add(&running, reason);
            }
        }
        let taken = begun.elapsed().max(Duration::from_millis(1));
        self.next = Some(Instant::now() + taken * PART);
    }

    fn add(&mut self, running: &Running<'_>, reason: String) {
        let process = running.member.process();
        let bytes = running.seen();
        let name = member_report::name(running.member);
        let looks = self.found.get(&process).map_or(0, |known| known.looks) + 1;
        if looks > 1 || self.found.len() < MOST {
            self.found.insert(process, Escaped { process, name, reason, bytes, looks });
        }
    }

    /// All that were not held, by their ids.
    pub fn list(&self) -> Vec<Escaped> {
        self.found.values().filter(|one| one.looks >= LOOKS).cloned().collect()
    }
}
