//! When all slots of a class are looked through, should a new process have been missed.

use discnice_units::Nanos;

use crate::tuning;

/// The roll calls of one class.
#[derive(Debug, Default)]
pub(crate) struct RollCall {
    /// When the next one is due.
    due: Nanos,
    /// Roll calls of a crowd since a process last joined.
    made: u32,
    /// How far looks at one idle process are apart.
    crowd: Nanos,
}

impl RollCall {
    /// When the next one is due.
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }

    /// The next one is due now, as a process may have been added to the class.
    pub(crate) fn hurry(&mut self) {
        (self.due, self.made) = (Nanos(0), 0);
    }

    /// Notes how far looks at one idle process are apart.
    pub(crate) fn set_crowd(&mut self, crowd: Nanos) {
        self.crowd = crowd;
    }

    /// Notes one that was due: the next is further off in a crowd.
    pub(crate) fn note_made(&mut self, now: Nanos) {
        self.made = tuning::discovery::ROLL_CALL_DOUBLINGS.min(self.made + 1);
        self.due = now.plus(tuning::discovery::ROLL_CALL.max(Nanos(self.crowd.0 << self.made)));
    }

    /// Notes one that was made because a process announced itself.
    pub(crate) fn note_answered(&mut self, now: Nanos) {
        self.made = 0;
        self.due = now.plus(tuning::discovery::ROLL_CALL.max(self.crowd));
    }
}
