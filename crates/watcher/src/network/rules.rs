//! What a class wants of its connections.

use discnice_ledger::Class;
use discnice_ledger::policy::Resource;
use discnice_units::Rate;

use crate::member::Watched;

/// What a class wants of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Set if they give way to others on the uplink.
    pub(super) yields: bool,
    /// Set if there is a limit of the network, now or while others are busy.
    pub(super) limits: bool,
    /// The limits in force: of what is sent, and of what is received.
    pub(super) rates: [Rate; 2],
    /// Set if traffic within the machine counts.
    pub(super) loopback: bool,
}

impl Rules {
    pub(super) fn of(class: &Class) -> Self {
        let rate = |resource| class.meter(resource).rate().min(class.meter(Resource::Net).rate());
        Self {
            yields: class.yields_uplink(),
            limits: class.minds_traffic(),
            rates: [rate(Resource::NetUp), rate(Resource::NetDown)],
            loopback: class.counts_loopback(),
        }
    }

    /// Whether anything is wanted of the connections of this member. The library sees to the limits where it is.
    pub(super) fn concern(&self, member: &Watched) -> bool {
        self.yields || self.limits && member.is_without_library()
    }
}
