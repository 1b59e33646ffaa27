//! Finds new processes in the system.
//!
//! The kernel hands out process ids in ascending order, and tells the last one in `/proc/loadavg`:
//! one small file says if any process was forked since the last look, and which ids it can have.
//! One census serves all classes that are watched.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use discnice_processes::tree;
use discnice_sys::deadline;
use discnice_sys::procfs::{self, Found, Stat};
use discnice_units::{Moment, Nanos};

use crate::discovery::fork_events::ForkEvents;
use crate::discovery::newcomer::Newcomer;
use crate::holding::debuggers::Debuggers;
use crate::schedule::beats;
use crate::schedule::unseen::Unseen;
use crate::tuning;

/// The id that was given out last (proc(5), `/proc/loadavg`, fifth field); threads have ids too.
#[derive(Debug, Default)]
pub struct LastId {
    /// Kept open: it is read hundreds of times a second.
    load: Option<File>,
}

impl LastId {
    /// Reads it.
    pub fn read(&mut self) -> Option<u32> {
        if self.load.is_none() {
            self.load = File::open("/proc/loadavg").ok();
        }
        let mut text = [0; 128];
        let length = self.load.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.trim_end().rsplit(' ').next()?.parse().ok()
    }
}

/// The processes forked since the last look.
#[derive(Debug, Default)]
pub struct Census {
    ids: LastId,
    /// The last one that was looked at, and whether it is not the last that was born.
    last: Option<u32>,
    is_behind: bool,
    /// Ids that may be those of processes which no look has found: a process has its id for a moment before it can be
    /// seen, and may be born while others are looked at.
    missed: Vec<u32>,
    /// Those that execute a program.
    unseen: Unseen,
    at: Moment,
    /// Set if the last look found that nothing was forked, and the kernel reports forks: the next look waits for one.
    awaits_births: bool,
    snapshot: Option<Snapshot>,
    /// Asked for at the first look.
    births: Option<ForkEvents>,
    debuggers: Debuggers,
    /// How often it was hurried, since when.
    hurried: u32,
    hurried_from: Moment,
}

/// All processes that lived a moment ago, and newcomers found since. Classes that begin to be
/// watched at the same time share it, as it takes long where thousands of processes live.
#[derive(Debug)]
struct Snapshot {
    taken: Moment,
    all: Vec<Rc<Newcomer>>,
}

impl Census {
    /// Returns newcomers since the last look, if it is time for another, made once `every` so
    /// often. Where the kernel reports forks, one after which nothing was forked is followed by a look when something is
    /// ([`Census::descriptor`]).
    pub fn look(&mut self, now: Moment, every: Nanos) -> Vec<Rc<Newcomer>> {
        if now < self.at {
            return Vec::new();
        }
        let before = self.last;
        self.awaits_births =
            every <= tuning::discovery::IDLE && self.follows_births() && self.may_hurry(now);
        let found = self.newcomers(now);
        self.awaits_births &= self.last == before && self.missed.is_empty();
        self.at = match self.awaits_births {
            _ if self.is_behind => now,
            true => beats::again(now, tuning::discovery::UNREPORTED),
            false => beats::again(now, every),
        };
        if let Some(births) = &mut self.births {
            let executed = births.take_executed();
            if every <= tuning::discovery::LIVELY {
                self.debuggers.note(now, found.iter().map(|newcomer| newcomer.stat.id));
                self.debuggers.note(now, executed.into_iter());
            }
        }
        self.debuggers.look(now);
        self.at = self.at.min(self.debuggers.next());
        self.at = self.unseen.next().map_or(self.at, |due| self.at.min(due));
        self.snapshot.take_if(|snapshot| now >= snapshot.taken.plus(tuning::discovery::SNAPSHOT));
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.all.extend_from_slice(&found);
        }
        found
    }

    /// Returns true if the kernel reports each fork, so that newcomers are known by their ancestry.
    #[must_use]
    pub fn follows_births(&self) -> bool {
        self.births.as_ref().is_some_and(ForkEvents::are_told)
    }

    /// The processes that newcomers name, which may be about to trace them. Newcomers are asked only while the census
    /// looks as often as [`tuning::discovery::LIVELY`].
    pub fn named(&self) -> impl Iterator<Item = u32> {
        self.debuggers.named()
    }

    /// Can be read when a process was born or executed a program, where the kernel tells. Whatever waits for it and finds
    /// it so has the next look made at once ([`Census::hurry`]). `None` if one is due anyway, while looks are made after a
    /// time, as births neither matter at once (`is_lively`) nor are rare, and while so many hurried that they cost too much.
    #[must_use]
    pub fn descriptor(&mut self, now: Moment, is_lively: bool) -> Option<BorrowedFd<'_>> {
        let is_wanted =
            (is_lively || self.awaits_births) && self.at > Moment::FIRST && self.may_hurry(now);
        self.births.as_ref().filter(|_| is_wanted).and_then(ForkEvents::descriptor)
    }

    /// Returns true if a look may be made at once.
    fn may_hurry(&mut self, now: Moment) -> bool {
        if now >= self.hurried_from.plus(tuning::discovery::HURRY_WINDOW) {
            (self.hurried_from, self.hurried) = (now, 0);
        }
        self.hurried < tuning::discovery::HURRIES
    }

    /// When to look again.
    #[must_use]
    pub fn next(&self) -> Moment {
        self.at
    }

    /// Has the next look made at once if a process was born that no look has found, at most as often as
    /// [`Census::descriptor`] allows: its event was taken together with those of others, so nothing can be read there.
    pub fn look_again(&mut self, now: Moment) {
        if !self.missed.is_empty() && self.follows_births() && self.may_hurry(now) {
            self.hurry();
        }
    }

    /// The next look is due now.
    pub fn hurry(&mut self) {
        self.hurried = self.hurried.saturating_add(1);
        self.at = Moment::FIRST;
    }

    /// Living processes that are new since the last call, or the next of them, parents before their
    /// children; none at the first call.
    fn newcomers(&mut self, now: Moment) -> Vec<Rc<Newcomer>> {
        self.births.get_or_insert_with(ForkEvents::begin);
        self.note_births(&HashSet::new());
        let Some(last) = self.ids.read() else { return Vec::new() };
        let before = self.last.unwrap_or(last);
        let has_lost = self.births.as_mut().is_some_and(ForkEvents::take_lost);
        if has_lost || last < before || last - before >= tuning::discovery::RELIST_FORKS {
            (self.last, self.is_behind) = (Some(last), false);
            self.missed.clear();
            let found = self.living(now, tree::every_process());
            let found = self.with_parents(now, found);
            return self.introduce(found);
        }
        let until = last.min(before + tuning::discovery::PORTION);
        (self.last, self.is_behind) = (Some(until), until < last);
        let missed = std::mem::take(&mut self.missed);
        let seen = self.unseen.look(now);
        let mut found = self.living(now, again(&missed, before, last).chain(before + 1..=until));
        found.extend(seen);
        let found = self.with_parents(now, found);
        if !self.follows_births() {
            let is_absent = |id: &u32| !found.iter().any(|stat| stat.id == *id);
            self.missed.extend((before + 1..=until).filter(is_absent));
        }
        self.introduce(found)
    }

    /// The living ones of these processes, parents before their children. One that executes a program is new again when it can
    /// be looked at.
    fn living(&mut self, now: Moment, ids: impl Iterator<Item = u32>) -> Vec<Stat> {
        let living = ids.filter_map(|id| {
            deadline::renew();
            match procfs::find(id) {
                Found::Process(stat) => Some(stat).filter(|stat| !stat.has_ended()),
                Found::Executing => {
                    self.unseen.add(now, id);
                    None
                }
                Found::Nothing => None,
            }
        });
        in_order(living.collect())
    }

    /// These, and parents of them that could not be looked at before. The child of one that still cannot is new again when it
    /// can: of which class it is shows only then.
    fn with_parents(&mut self, now: Moment, mut left: Vec<Stat>) -> Vec<Stat> {
        let mut found = Vec::new();
        while let Some(stat) = left.pop() {
            left.extend(self.unseen.look_at(now, stat.parent));
            if self.unseen.has(stat.parent) {
                self.unseen.add(now, stat.id);
            } else {
                found.push(stat);
            }
        }
        in_order(found)
    }

    /// Those of these newcomers are new again that executed a program when they were met.
    pub(crate) fn put_off(&mut self, now: Moment, newcomers: &[Rc<Newcomer>]) {
        for newcomer in newcomers.iter().filter(|newcomer| newcomer.is_unseen()) {
            self.unseen.add(now, newcomer.stat.id);
        }
        self.at = self.unseen.next().map_or(self.at, |due| self.at.min(due));
    }

    /// Adds the ancestry of newcomers, and notes which processes were born while these were looked for.
    fn introduce(&mut self, found: Vec<Stat>) -> Vec<Rc<Newcomer>> {
        self.note_births(&found.iter().map(|stat| stat.id).collect());
        self.with_ancestors(found)
    }

    /// As [`Self::introduce`], for one class: to all others these are as new as before.
    fn introduce_to_one(&mut self, found: Vec<Stat>) -> Vec<Rc<Newcomer>> {
        self.note_births(&HashSet::new());
        self.with_ancestors(found)
    }

    /// Adds the ancestry of newcomers: all of their ancestors were forked before they were found.
    fn with_ancestors(&mut self, found: Vec<Stat>) -> Vec<Rc<Newcomer>> {
        let births = self.births.get_or_insert_with(ForkEvents::begin);
        let meet = |stat: Stat| {
            let ancestors = births.ancestors(stat.id);
            Rc::new(Newcomer::of(stat, ancestors))
        };
        found.into_iter().map(meet).collect()
    }

    /// Takes what the kernel told of births; those are missed that are not among the found.
    fn note_births(&mut self, found: &HashSet<u32>) {
        if let Some(births) = &mut self.births {
            self.awaits_births &= !births.follow();
            self.missed.extend(births.take_born().into_iter().filter(|id| !found.contains(id)));
        }
    }

    /// Living processes that are younger than process `id`, which started at `started`, and perhaps some
    /// that are not; what comes after this is new at the next look. The answer is one class's alone: what was born since
    /// the last look is still new to the others.
    pub fn since(&mut self, now: Moment, id: u32, started: u64) -> Vec<Rc<Newcomer>> {
        let is_close = |last: &u32| *last >= id && *last - id < tuning::discovery::BY_NUMBER;
        if let Some(last) = self.ids.read().filter(is_close) {
            let found = self.living(now, id + 1..=last);
            return self.introduce_to_one(found);
        }
        if self.snapshot.is_none() {
            let found = self.living(now, tree::every_process());
            let all = self.introduce_to_one(found);
            self.snapshot = Some(Snapshot { taken: now, all });
        }
        let all = self.snapshot.iter().flat_map(|snapshot| &snapshot.all);
        all.filter(|one| one.stat.started >= started).cloned().collect()
    }
}

/// The ids among those missed that are looked at once more: not those that are yet to be looked at by number, from
/// `before` to `last`. The kernel may have begun anew with small numbers since they were missed.
fn again(missed: &[u32], before: u32, last: u32) -> impl Iterator<Item = u32> {
    missed.iter().copied().filter(move |id| !(before < *id && *id <= last))
}

fn in_order(mut found: Vec<Stat>) -> Vec<Stat> {
    found.sort_by_key(|stat| (stat.started, stat.id));
    found
}

#[cfg(test)]
mod tests;
