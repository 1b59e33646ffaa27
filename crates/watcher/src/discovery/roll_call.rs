//! When all slots of a class are looked through, should a new process have been missed.

use discnice_units::{Moment, Nanos};

use crate::schedule::unseen;
use crate::tuning;

/// The roll calls of one class.
#[derive(Debug, Default)]
pub(crate) struct RollCall {
    /// When the next one is due.
    due: Moment,
    /// Roll calls of a crowd since a process last joined.
    made: u32,
    /// How far looks at one idle process are apart.
    crowd: Nanos,
    /// Set if a listed process could not be looked at, as it executes a program, and since when that is so.
    is_unseen: bool,
    unseen_since: Option<Moment>,
}

impl RollCall {
    /// When the next one is due.
    pub(crate) fn due(&self) -> Moment {
        self.due
    }

    /// The next one is due now, as a process may have been added to the class.
    pub(crate) fn hurry(&mut self) {
        (self.due, self.made) = (Moment::FIRST, 0);
    }

    /// Notes how far looks at one idle process are apart.
    pub(crate) fn set_crowd(&mut self, crowd: Nanos) {
        self.crowd = crowd;
    }

    /// Notes that a listed process executes a program and could not be looked at: the next one follows soon.
    pub(crate) fn note_unseen(&mut self) {
        self.is_unseen = true;
    }

    /// Has the next one made after so long, or soon.
    fn put_off(&mut self, now: Moment, by: Nanos) {
        let is_unseen = std::mem::take(&mut self.is_unseen);
        self.unseen_since = self.unseen_since.or(Some(now)).filter(|_| is_unseen);
        self.due = now.plus(self.unseen_since.map_or(by, |since| unseen::apart(now, since)));
    }

    /// Notes one that was due: the next is further off in a crowd.
    pub(crate) fn note_made(&mut self, now: Moment) {
        self.made = tuning::discovery::ROLL_CALL_DOUBLINGS.min(self.made + 1);
        self.put_off(now, tuning::discovery::ROLL_CALL.max(Nanos(self.crowd.0 << self.made)));
    }

    /// Notes one that was made because a process announced itself.
    pub(crate) fn note_answered(&mut self, now: Moment) {
        self.made = 0;
        self.put_off(now, tuning::discovery::ROLL_CALL.max(self.crowd));
    }
}
