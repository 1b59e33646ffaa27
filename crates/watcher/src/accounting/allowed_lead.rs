//! How far the account of a preloaded process may be ahead of its books before it is held from outside.

use discnice_ledger::member::Charged;
use discnice_units::{Moment, Nanos};

use crate::accounting::unseen_io::Doing;
use crate::tuning;

/// What a preloaded process may be ahead of its books, and how long, before it is held.
pub(crate) struct Lead {
    /// More than this, for so long.
    pub(crate) bytes: u64,
    pub(crate) time: Nanos,
    /// More than this, and no time.
    pub(crate) most: u64,
}

/// A call that is in progress, or a few fast ones that it has not looked at yet; it takes less than this
/// to be settled after it did its I/O.
const STRICT: Lead = Lead {
    bytes: tuning::accounting::STRICT_LEAD,
    time: tuning::accounting::STRICT_LEAD_FOR,
    most: u64::MAX,
};
/// A process that may read by page faults alone, or by workers of the kernel, without a call of its
/// own. One that is in a long call must not be taken for it, as what it reserved would be charged
/// twice. One that is seen in a fault, and in no call, is taken for it sooner: [`UNSEEN`].
const RUNAWAY: Lead = Lead {
    bytes: tuning::accounting::RUNAWAY_LEAD,
    time: tuning::accounting::RUNAWAY_LEAD_FOR,
    most: u64::MAX,
};
/// A process that was seen in a fault, or waiting for the kernel's workers, and in no call. Books that are behind
/// for other reasons are settled within a call.
const UNSEEN: Lead = Lead {
    bytes: tuning::accounting::UNSEEN_LEAD,
    time: tuning::accounting::UNSEEN_LEAD_FOR,
    most: tuning::accounting::UNSEEN_LEAD_MOST,
};

impl Lead {
    /// Less is never too much.
    pub(crate) const LEAST: u64 = UNSEEN.bytes;

    /// What process `id` may be ahead, which is so much ahead.
    pub(crate) fn of(id: u32, ahead: u64, strict: bool) -> Self {
        if ahead >= UNSEEN.bytes && Doing::of(id) == Doing::Unseen {
            UNSEEN
        } else if strict {
            STRICT
        } else {
            RUNAWAY
        }
    }
}

/// How far the account of one preloaded process is ahead of its books.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Since when it has been ahead of these books.
    suspect: Option<(Moment, Charged)>,
    /// Until when it is expected to run ahead again.
    caught_until: Moment,
}

/// What follows from a lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The process charges itself.
    Allowed,
    /// The process ran ahead: its watcher charges it.
    RanAhead,
    /// The process ran ahead lately: its watcher still charges it.
    StillCharged,
}

impl Ahead {
    /// Judges a process that has charged `books` and is `ahead` of them by so many bytes; `allowed` says how far it may be.
    pub(crate) fn judge(
        &mut self,
        now: Moment,
        books: Charged,
        ahead: u64,
        is_stopped: bool,
        allowed: impl FnOnce() -> Lead,
    ) -> Verdict {
        let still = self.suspect.filter(|(_, before)| *before == books);
        if self.is_caught(now) && is_stopped {
            // It stands: that it is not ahead says nothing.
            self.caught_until = now.plus(tuning::accounting::AHEAD_AGAIN);
        } else if self.is_caught(now) && still.is_none() {
            // It charges itself again, and waits for that itself.
            self.caught_until = Moment::FIRST;
        }
        let mut verdict = Verdict::StillCharged;
        if !self.is_caught(now) {
            if ahead < Lead::LEAST {
                self.suspect = None;
                return Verdict::Allowed;
            }
            let lead = allowed();
            match still {
                _ if ahead >= lead.most => {}
                Some((since, _)) if ahead >= lead.bytes && now >= since.plus(lead.time) => {}
                Some(_) => return Verdict::Allowed,
                None => {
                    self.suspect = Some((now, books));
                    return Verdict::Allowed;
                }
            }
            verdict = Verdict::RanAhead;
        }
        if ahead > 0 {
            self.caught_until = now.plus(tuning::accounting::AHEAD_AGAIN);
        }
        verdict
    }

    /// Notes the books after the process was charged from outside.
    pub(crate) fn note_charged(&mut self, now: Moment, books: Charged) {
        self.suspect = Some((now, books));
    }

    /// Returns true while the process is expected to run ahead again.
    pub(crate) fn is_caught(&self, now: Moment) -> bool {
        now < self.caught_until
    }

    /// Returns true if the process has been ahead so lately that it is looked at as a busy one.
    pub(crate) fn is_suspect(&self, now: Moment) -> bool {
        let is_new = |since: Moment| now < since.plus(tuning::looks::SUSPECT_FOR);
        self.suspect.is_some_and(|(since, _)| is_new(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKS: Charged = Charged { read: 1, written: 2 };

    fn lead() -> Lead {
        Lead { bytes: Lead::LEAST, time: Nanos(10), most: 4 * Lead::LEAST }
    }

    #[test]
    fn a_lead_must_last_or_be_great() {
        let mut ahead = Ahead::default();
        let at = |ahead: &mut Ahead, now, by| ahead.judge(Moment(now), BOOKS, by, false, lead);
        assert_eq!(at(&mut ahead, 1, Lead::LEAST - 1), Verdict::Allowed);
        assert_eq!(at(&mut ahead, 2, Lead::LEAST), Verdict::Allowed, "suspected");
        assert!(ahead.is_suspect(Moment(3)));
        assert_eq!(at(&mut ahead, 11, Lead::LEAST), Verdict::Allowed, "not for long enough");
        assert_eq!(at(&mut ahead, 12, Lead::LEAST), Verdict::RanAhead);
        ahead.note_charged(Moment(12), BOOKS);
        assert_eq!(at(&mut ahead, 13, 0), Verdict::StillCharged);
        let mut other = Ahead::default();
        assert_eq!(at(&mut other, 1, 4 * Lead::LEAST), Verdict::RanAhead, "at once");
    }

    #[test]
    fn what_charges_itself_again_is_left_to_itself() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.judge(Moment(1), BOOKS, 4 * Lead::LEAST, false, lead), Verdict::RanAhead);
        ahead.note_charged(Moment(1), BOOKS);
        let books = Charged { read: 5, written: 5 };
        assert_eq!(
            ahead.judge(Moment(2), books, 0, true, lead),
            Verdict::StillCharged,
            "it stands"
        );
        assert_eq!(ahead.judge(Moment(3), books, 0, false, lead), Verdict::Allowed);
        assert!(!ahead.is_caught(Moment(3)));
    }
}
