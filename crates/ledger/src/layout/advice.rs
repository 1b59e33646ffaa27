//! What the user's own policy says, as a ceiling of the class's traffic.

use discnice_units::{Moment, Rate};

use crate::advice::Advice;
use crate::layout::Class;
use crate::policy::Resource;

impl Class {
    /// What the user's own policy says.
    #[must_use]
    pub fn advice(&self) -> &Advice {
        &self.advice
    }

    //= discnice/4.1-own-policy
    /// Puts rates in force until a moment, below the thresholds; the caller then wakes the threads that wait on
    /// [`Class::changes`] if that changed any.
    pub fn advise(&self, now: Moment, rates: &[Rate; Resource::COUNT], until: Moment) -> bool {
        self.advice.write(rates, until);
        self.apply_ceilings(now)
    }

    /// Takes the rates of an answer away that has ended. A member asks before it reserves.
    #[inline]
    pub fn mind_advice(&self, now: Moment) -> bool {
        self.advice.expire(now) && self.apply_ceilings(now)
    }

    /// Puts what ceilings allow in force, and the thresholds that hold already.
    pub(super) fn apply_ceilings(&self, now: Moment) -> bool {
        self.hold(now, self.limited(), (1, 1))
    }
}
