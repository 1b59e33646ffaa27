//! Gives way on the network without a number, to other machines behind the same uplink, too. Exists for `eval/benches/uplink.py`.
//!
//! The round trips of the members' own TCP connections tell how long the queue is ([`discnice_ledger::policy::delay`]). Their
//! descriptors are borrowed for a moment, pidfd_getfd(2), as that works for every program however it is held: to ask
//! (`TCP_INFO`), and to tell the kernel how fast a connection sends (`SO_MAX_PACING_RATE`) and how much may be on its way to
//! it (`TCP_WINDOW_CLAMP`). No call of a program waits for that.
//!
//! - `connections`: which connections members have;
//! - `paths`: the connections of a class with one machine, in one direction, which share a window.

mod connections;
mod paths;

use std::collections::HashMap;

use connections::Connections;
use discnice_ledger::Class;
use discnice_ledger::uplink::Yielding;
use discnice_sys::time;
use discnice_units::Nanos;
use paths::Paths;

use crate::member::Watched;
use crate::tuning;

//= gray-box/7-distributed
/// The connections of a class under watch.
#[derive(Debug, Default)]
pub(crate) struct Uplink {
    connections: Connections,
    paths: Paths,
    looked_at: Nanos,
}

/// When all classes under watch are looked at again.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    search_at: Nanos,
    look_at: Nanos,
}

impl Pace {
    /// What is due now: whether to search, and whether to look.
    pub(crate) fn due(&self, now: Nanos) -> (bool, bool) {
        (now >= self.search_at, now >= self.look_at.min(self.search_at))
    }

    /// When anything is due again.
    pub(crate) fn next(&self) -> Nanos {
        self.search_at.min(self.look_at)
    }

    /// Notes that a look was made, and of how many descriptors at a search; returns when the next one is due.
    pub(crate) fn done(&mut self, now: Nanos, searched: Option<u64>, lively: bool) -> Nanos {
        if let Some(searched) = searched {
            let apart = searched
                .saturating_mul(tuning::uplink::SEARCH_EACH.0)
                .clamp(tuning::uplink::SEARCH.0, tuning::uplink::SEARCH_MOST.0);
            self.search_at = now.plus(Nanos(apart));
        }
        self.look_at = if lively { now.plus(tuning::uplink::LOOK) } else { Nanos(u64::MAX) };
        self.next()
    }
}

impl Uplink {
    /// Looks at the connections of the members, and says what they may do; `searches` is set if new ones are looked for.
    /// Returns if any moved bytes of late, and how many descriptors were looked through.
    pub(crate) fn step(
        &mut self,
        class: &Class,
        members: &HashMap<u32, Watched>,
        searches: bool,
    ) -> (bool, u64) {
        let now = time::now();
        let is_on = class.yields_uplink();
        let searched = if searches && is_on { self.connections.search(members) } else { 0 };
        if self.connections.is_empty() {
            return (false, searched);
        }
        if !is_on {
            self.release(members);
            class.uplink().say(now, None, Nanos(0));
            return (false, searched);
        }
        let lasted = now.minus(std::mem::replace(&mut self.looked_at, now)).min(Nanos::SECOND);
        let was_yielding = self.paths.worst().is_some();
        let lively = self.connections.look(now, members, &mut self.paths);
        let yielding = self.paths.worst();
        let held = if was_yielding { lasted } else { Nanos(0) };
        if was_yielding || yielding.is_some() {
            class.uplink().say(now, yielding, held);
        }
        (lively, searched)
    }

    /// Leaves all connections as fast as they were.
    pub(crate) fn release(&mut self, members: &HashMap<u32, Watched>) {
        self.connections.release(members);
        self.paths = Paths::default();
    }
}

/// What is said of a path that gives way.
fn said(peer: [u8; 16], queue: Nanos, rate: u64) -> Yielding {
    Yielding { queue, peer, rate }
}
