//! What a job waited for, and for how long by the clock: however many threads and children wait at once, time passes once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use discnice_sys::procfs;
use discnice_watcher::process::{threads, tracer};
use serde::Serialize;

use crate::binding::Binding;
use crate::classes::MappedClass;
use crate::explanation::others::Moving;
use crate::explanation::waiting;
use crate::family::Family;
use crate::looks::RESTS_PER_LOOK;
use crate::running::Running;

/// The time in which something of a job's classes waited, by what it waited for.
#[derive(Debug)]
pub struct Waited {
    looked: Instant,
    next: Instant,
    by: BTreeMap<Binding, Duration>,
    /// For how long each process stood, held from outside.
    frozen: BTreeMap<u32, u64>,
    before: u64,
    /// The most threads that were seen at once.
    threads: usize,
    others: Moving,
    /// What was waited for at the last look.
    present: Option<Binding>,
}

/// Time by one reason.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// What was waited for.
    pub reason: Binding,
    /// For how long.
    pub seconds: f64,
}

impl Waited {
    /// Begins now.
    pub fn begin(family: &Family) -> Self {
        let now = Instant::now();
        let mut waited = Self {
            looked: now,
            next: now,
            by: BTreeMap::new(),
            frozen: BTreeMap::new(),
            before: 0,
            threads: 0,
            others: Moving::default(),
            present: None,
        };
        waited.note_frozen(family);
        waited.before = waited.frozen.values().sum();
        waited
    }

    /// Looks whether something waits, unless it did so just now.
    pub fn look(&mut self, family: &Family) {
        let begun = Instant::now();
        if begun < self.next {
            return;
        }
        let passed = begun.duration_since(std::mem::replace(&mut self.looked, begun));
        self.note_frozen(family);
        let (mut threads, mut reasons) = (0, BTreeSet::new());
        for found in family.classes() {
            let running: Vec<Running<'static>> = Running::all(found).collect();
            threads += running.iter().map(count_threads).sum::<usize>();
            reasons.extend(reason(found, &running));
        }
        self.threads = self.threads.max(threads);
        // Of children that wait for different things each has its part.
        let parts = u32::try_from(reasons.len()).unwrap_or(u32::MAX).max(1);
        for reason in &reasons {
            *self.by.entry(*reason).or_default() += passed / parts;
        }
        if reasons.iter().any(|reason| matches!(reason, Binding::Others(_) | Binding::Least)) {
            self.others.look();
        }
        self.present = reasons.pop_first();
        self.next = Instant::now() + begun.elapsed() * RESTS_PER_LOOK;
    }

    /// What was waited for at the last look.
    pub fn present(&self) -> Option<Binding> {
        self.present
    }

    fn note_frozen(&mut self, family: &Family) {
        for running in family.classes().flat_map(Running::all) {
            if let Some(account) = running.outside {
                self.frozen.insert(running.member.process(), account.frozen);
            }
        }
    }

    /// Time that processes stood, held from outside, each for itself.
    pub fn stood(&self) -> f64 {
        let all: u64 = self.frozen.values().sum();
        all.saturating_sub(self.before) as f64 / 1e9
    }

    /// What was waited for longest comes first. Looks are a moment apart, so the sum is set right by what is exact: it is
    /// no more than all threads waited, and no less than that divided by the threads that there were at once; nor is it
    /// more than `elapsed` seconds.
    pub fn parts(&self, threads_waited: f64, elapsed: f64) -> Vec<Part> {
        let all: f64 = self.by.values().map(Duration::as_secs_f64).sum();
        let most = threads_waited.min(elapsed);
        let least = (threads_waited / self.threads.max(1) as f64).min(most);
        let share = if all > 0.0 { all.clamp(least, most) / all } else { 0.0 };
        let mut parts: Vec<Part> = self
            .by
            .iter()
            .map(|(reason, time)| Part { reason: *reason, seconds: time.as_secs_f64() * share })
            .collect();
        parts.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        parts
    }

    /// The process of others that was seen to move most while the class gave way.
    pub fn most_in_the_way(&self) -> Option<String> {
        self.others.most()
    }
}

/// What these members of a class wait for, if any does.
fn reason(found: &MappedClass, running: &[Running<'_>]) -> Option<Binding> {
    let rests = running.iter().any(Running::rests);
    Binding::of(found, rests).filter(|_| running.iter().any(is_waiting))
}

fn count_threads(running: &Running<'_>) -> usize {
    threads(running.member.process()).count()
}

/// Whether something of a process waits for its class: a thread in our library or in its supervisor, or all of it held from
/// outside.
fn is_waiting(running: &Running<'_>) -> bool {
    let id = running.member.process();
    let stands = || {
        tracer(id.cast_signed()).is_some()
            || procfs::stat(id).is_some_and(|stat| stat.state == b'T')
    };
    waiting::any_thread_waits(id) || running.held.is_some() && stands()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_no_more_than_threads_waited() {
        let now = Instant::now();
        let by = [
            (Binding::Limit(0), Duration::from_secs(2)),
            (Binding::Others(0), Duration::from_secs(6)),
        ];
        let waited = Waited {
            looked: now,
            next: now,
            by: by.into(),
            frozen: BTreeMap::new(),
            before: 0,
            threads: 4,
            others: Moving::default(),
            present: None,
        };
        let seconds = |parts: Vec<Part>| parts.iter().map(|part| part.seconds).collect::<Vec<_>>();
        assert_eq!(seconds(waited.parts(30.0, 20.0)), [6.0, 2.0]);
        assert_eq!(seconds(waited.parts(4.0, 20.0)), [3.0, 1.0], "no more than threads waited");
        assert_eq!(
            seconds(waited.parts(64.0, 20.0)),
            [12.0, 4.0],
            "all four waited at least so long"
        );
        assert_eq!(seconds(waited.parts(99.0, 4.0)), [3.0, 1.0], "no more than passed");
        assert_eq!(seconds(waited.parts(0.0, 20.0)), [0.0, 0.0]);
    }
}
