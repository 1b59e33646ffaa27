//! Finds the processes of this user that a rule matches.
//!
//! The kernel tells an ordinary user of no birth, or only on some machines, so this looks: at the number that was
//! given out last, four times a second; at processes of higher numbers; and, for two seconds after its birth, again at
//! each new one, because most execute their program only then. All others are looked through in turn, once in ten seconds.
//! However many processes there are, this takes a four-hundredth of a processor at most, where processors are fast: each look
//! ends after a millisecond, but not before a few processes have been looked at, and what is left waits for the next one.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use discnice_processes::tree;
use discnice_sys::block::BlockId;
use discnice_sys::process::user;
use discnice_units::{Moment, Nanos};
use rustix::time::{ClockId, clock_gettime};

use super::files::Files;
use super::subject::{Identity, Key, Subject};
use super::{Candidate, Outcome, Rule, Rulebook, first};
use crate::daemon::tuning;
use crate::discovery::census::LastId;

/// What is known of a process of this user.
#[derive(Debug)]
struct Known {
    identity: Identity,
    /// Set while it has been compared with the rules that are in force.
    judged: bool,
    /// Hash of what the rules asked about it.
    print: u64,
    /// When it is tried again, if it could not enter its class.
    retry: Option<Moment>,
    /// A rule has put it into a class: not a second time, as the user may have detached it.
    entered: bool,
}

/// Looks through this user's processes for those that a rule matches.
#[derive(Debug)]
pub(crate) struct Patrol {
    book: Rulebook,
    rules: Vec<Rule>,
    keys: Vec<Key>,
    files: Files,
    files_at: Moment,
    due: Moment,
    last: LastId,
    before: Option<u32>,
    /// Processes to look at now, and those that are looked at again, with the end of their youth.
    fresh: VecDeque<u32>,
    young: VecDeque<(u32, Moment)>,
    /// What is left of the present round, and when the next begins.
    round: Vec<u32>,
    round_at: Moment,
    known: HashMap<u32, Known>,
}

impl Patrol {
    /// Begins with what the configuration says now.
    pub(crate) fn new(book: Rulebook) -> Self {
        Self {
            book,
            rules: Vec::new(),
            keys: Vec::new(),
            files: Files::new(book),
            files_at: Moment::FIRST,
            due: Moment::FIRST,
            last: LastId::default(),
            before: None,
            fresh: VecDeque::new(),
            young: VecDeque::new(),
            round: Vec::new(),
            round_at: Moment::FIRST,
            known: HashMap::new(),
        }
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// When to look next.
    pub(crate) fn next(&self) -> Moment {
        self.due
    }

    /// Looks, if it is time; returns the blocks of classes that processes were put into.
    pub(crate) fn step(&mut self, now: Moment) -> Vec<BlockId> {
        if now < self.due {
            return Vec::new();
        }
        let begun = used();
        if now >= self.files_at {
            self.follow_files();
            let awaited = self.files.are_awaited();
            self.files_at =
                now.plus(if awaited { tuning::rules::TICK } else { tuning::rules::FILES });
        }
        if self.rules.is_empty() {
            self.due = self.files_at;
            return Vec::new();
        }
        self.gather(now);
        let entered = self.look_at_all(now, begun);
        let spent = used().minus(begun);
        self.due = now.plus(
            Nanos(spent.0.saturating_mul(tuning::rules::SHARE))
                .clamp(tuning::rules::TICK, tuning::rules::LONGEST),
        );
        entered
    }

    /// Follows the rules if a file has changed. Wrong ones leave those in force that there were.
    fn follow_files(&mut self) {
        let Some(rules) = self.files.follow() else { return };
        self.keys = Key::ALL.into_iter().filter(|key| is_asked(&rules, *key)).collect();
        self.rules = rules;
        // Each is to be looked at by the new rules, and those that are in a class are known as such.
        self.known.values_mut().for_each(|known| known.judged = false);
        (self.round, self.round_at) = (Vec::new(), Moment::FIRST);
    }

    /// Lists what to look at: the new, the young, and a part of all others.
    fn gather(&mut self, now: Moment) {
        let last = self.last.read().unwrap_or_default();
        let before = self.before.replace(last).unwrap_or(last);
        if last < before {
            // The numbers begin anew.
            self.fresh.extend(tree::every_process().filter(|id| *id <= last));
        } else if last - before > tuning::rules::RELIST_FORKS {
            self.fresh.extend(tree::every_process().filter(|id| (before + 1..=last).contains(id)));
        } else {
            // Most have ended.
            self.fresh.extend((before + 1..=last).filter(|id| is_own(*id)));
        }
        self.young.retain(|(_, until)| now < *until);
        let again = self.young.iter().map(|(id, _)| *id).filter(|id| !self.fresh.contains(id));
        let again: Vec<u32> = again.collect();
        self.fresh.extend(again);
        if self.round.is_empty() && now >= self.round_at {
            self.round_at = now.plus(tuning::rules::ROUND);
            self.round = tree::every_process().collect();
            self.round.sort_unstable();
            self.known.retain(|id, _| self.round.binary_search(id).is_ok());
        }
    }

    /// Looks at those, new and old ones in turn, until the budget is used up; at a few in any case, as what comes back into
    /// caches and page tables after a sleep can take longer than the budget lasts.
    fn look_at_all(&mut self, now: Moment, begun: Nanos) -> Vec<BlockId> {
        let mut entered = Vec::new();
        let end = begun.plus(tuning::rules::BUDGET);
        let old = self.round.len().min(tuning::rules::PORTION);
        let mut old = self.round.split_off(self.round.len() - old);
        for looked in 0.. {
            if looked >= tuning::rules::LEAST && used() >= end {
                break;
            }
            let fresh =
                if looked % 2 == 0 || old.is_empty() { self.fresh.pop_front() } else { None };
            let Some(id) = fresh.or_else(|| old.pop()) else { break };
            entered.extend(self.look(id, now, fresh.is_some()));
        }
        self.round.append(&mut old);
        entered
    }

    /// Looks at one process; returns the block of the class that it was put into.
    fn look(&mut self, id: u32, now: Moment, is_fresh: bool) -> Option<BlockId> {
        let known = self.known.get(&id);
        // Of another user's processes no more than that is asked.
        if known.is_none() && !is_own(id) {
            return None;
        }
        let identity = Identity::read(id)?;
        let known = known.filter(|known| known.identity.started == identity.started);
        let is_settled = |known: &Known| {
            known.judged && known.retry.is_none_or(|at| now < at) && known.identity == identity
        };
        // What is young may still change its control group.
        if known.is_some_and(|known| known.entered || !is_fresh && is_settled(known)) {
            return None;
        }
        let subject = Subject::read(id, self.keys.iter().copied()).filter(|_| is_own(id))?;
        let print = print(&subject);
        if known.is_some_and(|known| known.print == print && is_settled(known)) {
            return None;
        }
        if known.is_none() && is_fresh {
            self.young.push_back((id, now.plus(tuning::rules::YOUNG)));
        }
        let (entered, retry) = match self.admit(id, identity.started, &subject) {
            Some(Ok(Some(block))) => (Some(block), None),
            // It is in a class, or cannot be held now, which may change.
            Some(Ok(None) | Err(_)) => (None, Some(now.plus(tuning::rules::ROUND))),
            None => (None, None),
        };
        let entered_one = entered.is_some();
        let known = Known { identity, judged: true, print, retry, entered: entered_one };
        self.known.insert(id, known);
        entered
    }

    /// Puts a process into the class of the rule that decides about it; `None` if there is no such rule.
    fn admit(
        &self,
        id: u32,
        started: u64,
        subject: &Subject,
    ) -> Option<Result<Option<BlockId>, String>> {
        match &first(&self.rules, subject)?.outcome {
            Outcome::LeaveAlone => None,
            Outcome::Enter(class, limits) => {
                Some((self.book.admit)(Candidate { id, started, class, limits }))
            }
        }
    }
}

fn is_asked(rules: &[Rule], key: Key) -> bool {
    rules.iter().any(|rule| rule.conditions.keys().any(|one| one == key))
}

fn is_own(id: u32) -> bool {
    fs::metadata(format!("/proc/{id}")).is_ok_and(|facts| facts.uid() == user())
}

fn print(subject: &Subject) -> u64 {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    hasher.finish()
}

/// Processor time of this thread.
fn used() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec.unsigned_abs() * Nanos::SECOND.0 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use discnice_ledger::policy::Limits;

    use super::super::Loaded;
    use super::*;

    static FOUND: AtomicBool = AtomicBool::new(false);

    /// Takes more processor time than a look may, as the first system calls do on a virtual machine that was idle.
    fn load_slowly() -> Loaded {
        let end = used().plus(tuning::rules::BUDGET).plus(tuning::rules::BUDGET);
        while used() < end {}
        let conditions = toml::from_str("cmdline = '*'").unwrap();
        let outcome = Outcome::Enter("any".into(), Box::new(Limits::UNLIMITED));
        Loaded {
            rules: Ok(vec![Rule { conditions, outcome, place: String::new() }]),
            files: Vec::new(),
        }
    }

    fn note(candidate: Candidate<'_>) -> Result<Option<BlockId>, String> {
        FOUND.fetch_or(candidate.id == std::process::id(), Relaxed);
        Ok(None)
    }

    #[test]
    fn a_process_is_found_though_waking_up_takes_longer_than_a_look_may_and_others_are_born() {
        let mut patrol = Patrol::new(Rulebook { place: || None, load: load_slowly, admit: note });
        // The first of all others, which comes last, and more new ones than there is time for.
        patrol.fresh = std::iter::repeat_n(1, 100_000).collect();
        let (mut now, mut looks) = (Moment::FIRST.plus(Nanos::SECOND), 0);
        // Other tests start processes meanwhile, and end others, which stay in the round that was begun with them.
        let mut most = 0;
        let mut enough = || {
            most = most.max(tree::every_process().count());
            2 * (most / (tuning::rules::LEAST / 2) + 2)
        };
        while !FOUND.load(Relaxed) && looks < enough() {
            patrol.step(now);
            now = now.plus(tuning::rules::LONGEST);
            looks += 1;
        }
        assert!(FOUND.load(Relaxed), "in {looks} looks; {} known", patrol.known.len());
    }
}
