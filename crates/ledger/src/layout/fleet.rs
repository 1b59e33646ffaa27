//! The lease of a budget that many machines share, as a ceiling of the class's disk traffic.

use discnice_units::{Moment, Rate};

use crate::fleet::Fleet;
use crate::layout::Class;
use crate::policy::Resource;

impl Class {
    /// This machine's part of a budget that many share.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Puts the class into a fleet; its members have the floor until there is a lease. The caller then wakes the
    /// threads that wait on [`Class::changes`], as after the three below.
    pub fn join_fleet(&self, now: Moment) -> bool {
        self.fleet.join();
        self.apply_ceilings(now)
    }

    /// Takes the class out of its fleet.
    pub fn leave_fleet(&self, now: Moment) -> bool {
        self.fleet.leave();
        self.apply_ceilings(now)
    }

    /// Writes a lease: `grant` bytes a second beyond `floor` until `until`.
    pub fn write_lease(&self, now: Moment, (grant, floor): (u64, u64), until: Moment) -> bool {
        self.fleet.write(grant, floor, until);
        self.apply_ceilings(now)
    }

    /// Ends the lease: the class has its floor.
    pub fn end_lease(&self, now: Moment) -> bool {
        self.fleet.end();
        self.apply_ceilings(now)
    }

    /// Falls to the floor if a lease has ended. A member asks before it reserves; so a holder that was stopped in the
    /// middle of a change, and goes on after the end of its lease, raises the rate until the next call at most.
    #[inline]
    pub fn mind_lease(&self, now: Moment) -> bool {
        self.fleet.has_ended(now, self.total().rate()) && self.apply_ceilings(now)
    }

    /// The most that a lease and the user's own policy allow a resource.
    pub(super) fn ceiling(&self, now: Moment, resource: Resource) -> Rate {
        let leased = match resource {
            Resource::Total => self.fleet.allowed(now).unwrap_or(Rate::UNLIMITED),
            _ => Rate::UNLIMITED,
        };
        leased.min(self.advice.rate(now, resource))
    }
}
