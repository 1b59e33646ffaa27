//! What a node knows of its lease, and when it calls the server. No clock and no connection: both are given.

use discnice_units::{Moment, Nanos};

use crate::script::{Ask, Granted};

/// A lease is renewed so many times in its length.
const RENEWALS: u64 = 6;
/// A node that gave something back says so after this part of the time between two renewals, so that others can have
/// it; one that has less than it is entitled to asks again.
const SOONER: u64 = 5;
/// Time between two calls before any was answered, and after one was not.
const RETRY: Nanos = Nanos(Nanos::SECOND.0);
/// Calls of many nodes that began at once drift apart by this part of the time between them.
const JITTER: u64 = 10;

/// A node of a fleet.
#[derive(Debug, Clone)]
pub struct Node {
    weight: u32,
    /// Bytes a second beyond the floor, and until when.
    lease: (u64, Moment),
    /// Of the last call.
    sequence: u64,
    due: Moment,
}

impl Node {
    /// Returns a node that has this lease already, in force until then; usually none.
    #[must_use]
    pub const fn new(weight: u32, lease: (u64, Moment)) -> Self {
        Self { weight, lease, sequence: 0, due: Moment::FIRST }
    }

    /// Changes its part relative to others'.
    pub const fn set_weight(&mut self, weight: u32) {
        self.weight = weight;
    }

    /// Bytes a second beyond the floor that it has now.
    #[must_use]
    pub const fn has(&self, now: Moment) -> u64 {
        if now.0 < self.lease.1.0 { self.lease.0 } else { 0 }
    }

    /// When its lease ends.
    #[must_use]
    pub const fn until(&self) -> Moment {
        self.lease.1
    }

    /// When it is to call.
    #[must_use]
    pub const fn due(&self) -> Moment {
        self.due
    }

    /// Calls sooner.
    pub fn hurry(&mut self, at: Moment) {
        self.due = self.due.min(at);
    }

    /// Calls later: what was wrong takes a person to set right.
    pub fn put_off(&mut self, until: Moment) {
        self.due = self.due.max(until);
    }

    /// What it asks for now. Until the call was answered the next one is a second away.
    pub fn ask(&mut self, now: Moment, wants: u64) -> Ask {
        // Microseconds since the machine was started: they rise over restarts of the program, too.
        self.sequence = (now.0 / 1000).max(self.sequence + 1);
        self.due = now.plus(RETRY);
        Ask { sequence: self.sequence, has: self.has(now), wants, weight: self.weight }
    }

    /// What it asks for when it leaves the fleet.
    pub fn leave(&mut self, now: Moment) -> Ask {
        self.lease = (0, Moment::FIRST);
        Ask { weight: 0, wants: 0, ..self.ask(now, 0) }
    }

    /// Takes the lease that was granted to a call that was sent at `sent`, unless it is not the last call's.
    /// `chance` spreads the calls of many nodes.
    pub fn take(&mut self, ask: &Ask, sent: Moment, granted: &Granted, chance: u64) -> bool {
        if ask.sequence != self.sequence {
            return false;
        }
        // From before the call, so however long it took the server forgets later.
        self.lease = (granted.grant, sent.plus(Nanos::from_millis(granted.lease)));
        let renewal = granted.lease / RENEWALS;
        let moving = granted.grant < ask.has
            || granted.learning == 0 && granted.grant + granted.entitled / 10 < granted.entitled;
        let until = if moving { renewal / SOONER } else { renewal };
        let until = if granted.learning > 0 { until.min(granted.learning + 1) } else { until };
        let spread = until / JITTER;
        let early = if spread == 0 { 0 } else { chance % (2 * spread) };
        self.due = sent.plus(Nanos::from_millis((until + spread).saturating_sub(early).max(50)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: Granted = Granted {
        grant: 500,
        floor: 10,
        lease: 30_000,
        cap: 10_000,
        nodes: 3,
        entitled: 500,
        learning: 0,
    };

    const fn at(seconds: u64) -> Moment {
        Moment(seconds * Nanos::SECOND.0)
    }

    #[test]
    fn a_lease_counts_from_before_the_call() {
        let mut node = Node::new(100, (0, Moment::FIRST));
        let ask = node.ask(at(10), 700);
        assert_eq!((ask.has, ask.wants, ask.weight), (0, 700, 100));
        assert!(node.take(&ask, at(10), &GRANTED, 0));
        assert_eq!((node.has(at(39)), node.has(at(40))), (500, 0));
        assert!((at(14)..=at(16)).contains(&node.due()), "{:?}", node.due());
    }

    #[test]
    fn an_old_reply_is_not_taken() {
        let mut node = Node::new(100, (300, at(20)));
        let old = node.ask(at(10), 700);
        assert_eq!(old.has, 300, "what it had before");
        let new = node.ask(at(11), 100);
        assert!(new.sequence > old.sequence);
        assert!(!node.take(&old, at(10), &GRANTED, 0));
        assert_eq!(node.has(at(19)), 300);
        let left = node.leave(at(12));
        assert_eq!((left.has, left.weight), (0, 0));
    }

    #[test]
    fn what_moves_is_told_soon() {
        let mut node = Node::new(100, (900, at(100)));
        let ask = node.ask(at(10), 700);
        node.take(&ask, at(10), &GRANTED, 0);
        assert!(node.due() <= at(12), "a shrink");
        let ask = node.ask(at(20), 700);
        node.take(&ask, at(20), &Granted { entitled: 600, ..GRANTED }, 0);
        assert!(node.due() <= at(22), "less than it is entitled to");
    }
}
