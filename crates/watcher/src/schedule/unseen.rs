//! When to look again at processes that execute a program, which cannot be looked at before they have closed their files
//! ([`Found::Executing`]): soon at first, because nearly all have done so at once, and ever more seldom.

use discnice_sys::procfs::{self, Found, Stat};
use discnice_units::{Moment, Nanos};

use crate::tuning;

/// How far looks at such a process are apart, found so first at `since`.
pub(crate) fn apart(now: Moment, since: Moment) -> Nanos {
    let share = Nanos(now.since(since).0 / tuning::looks::EXECUTING_SHARE);
    share.clamp(tuning::looks::EXECUTING, tuning::looks::DORMANT)
}

/// Processes that are to be looked at again.
#[derive(Debug, Default)]
pub(crate) struct Unseen(Vec<One>);

#[derive(Debug)]
struct One {
    id: u32,
    since: Moment,
    due: Moment,
}

impl Unseen {
    /// Adds a process.
    pub(crate) fn add(&mut self, now: Moment, id: u32) {
        if !self.0.iter().any(|known| known.id == id) {
            self.0.push(One { id, since: now, due: now.plus(tuning::looks::EXECUTING) });
        }
    }

    /// Returns true if it is one of them.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.iter().any(|one| one.id == id)
    }

    /// Looks at one of them now; returns it, and forgets it, if it lives and can be looked at.
    pub(crate) fn look_at(&mut self, now: Moment, id: u32) -> Option<Stat> {
        self.look_at_some(now, |one| one.id == id).pop()
    }

    /// When one of them is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.iter().map(|one| one.due).min()
    }

    /// Looks at those that are due; returns the living ones that can be looked at by now, and forgets them.
    pub(crate) fn look(&mut self, now: Moment) -> Vec<Stat> {
        self.look_at_some(now, |one| now >= one.due)
    }

    fn look_at_some(&mut self, now: Moment, which: impl Fn(&One) -> bool) -> Vec<Stat> {
        let mut found = Vec::new();
        self.0.retain_mut(|one| {
            if !which(one) {
                return true;
            }
            let seen = procfs::find(one.id);
            if let Found::Process(stat) = seen {
                found.extend(Some(stat).filter(|stat| !stat.has_ended()));
            }
            one.due = now.plus(apart(now, one.since));
            seen == Found::Executing
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_get_rarer() {
        let looks = |until: Moment| {
            let (mut now, mut count) = (Moment::FIRST, 0);
            while now < until {
                now = now.plus(apart(now, Moment::FIRST));
                count += 1;
            }
            count
        };
        assert!((4..=20).contains(&looks(Moment::FIRST.plus(Nanos::from_millis(20)))));
        assert!((100..=130).contains(&looks(Moment(10 * Nanos::SECOND.0))));
    }

    #[test]
    fn a_process_is_told_of_once_when_it_can_be_looked_at() {
        let (mut unseen, own) = (Unseen::default(), std::process::id());
        unseen.add(Moment::FIRST, own);
        unseen.add(Moment(1), own);
        unseen.add(Moment::FIRST, u32::MAX >> 1);
        assert_eq!(unseen.next(), Some(Moment::FIRST.plus(tuning::looks::EXECUTING)));
        assert!(unseen.look(Moment(1)).is_empty(), "it is not time yet");
        assert!(unseen.has(own) && unseen.look_at(Moment(1), u32::MAX >> 1).is_none());
        assert!(!unseen.has(u32::MAX >> 1), "there is none");
        let found = unseen.look(Moment::FIRST.plus(Nanos::SECOND));
        assert_eq!(found.iter().map(|stat| stat.id).collect::<Vec<_>>(), [own]);
        assert_eq!(unseen.next(), None);
    }
}
