//! What members move over TCP, seen and regulated from outside: the network limits of a class for programs without the
//! library, and giving way, for all programs, to other machines behind the same uplink. Exists for `eval/benches/uplink.py`.
//!
//! Descriptors of connections are borrowed for a moment, pidfd_getfd(2), as that works for every program however it is held:
//! to ask what a connection has moved and how long its round trips take (`TCP_INFO`), and to tell the kernel how fast it sends
//! (`SO_MAX_PACING_RATE`) and how much may be on its way to it (`TCP_WINDOW_CLAMP`). No call of a program waits for that.
//!
//! - `connection`, `connections`: which connections members have, and what they move;
//! - `diag`: what the kernel tells of connections that cannot be borrowed;
//! - `paths`: the connections of a class with one machine, in one direction, which share a window. Their round trips tell how
//!   long the queue is ([`discnice_ledger::policy::delay`]);
//! - `shares`: what the limits of the class leave to each connection;
//! - `rules`: what the class wants of them;
//! - `permission`: whether the system lets us see them.

mod connection;
mod connections;
mod diag;
mod paths;
mod permission;
mod rules;
mod shares;

use std::collections::HashMap;

use connections::{Connections, Found};
use discnice_ledger::Class;
use discnice_sys::time;
use discnice_units::{Moment, Nanos};
use paths::Paths;
pub use permission::seen;
use rules::Rules;

use crate::member::Watched;
use crate::schedule::beats;
use crate::tuning;

//= gray-box/7-distributed
//= rate-windows/5-network
/// The connections of a class under watch.
#[derive(Debug, Default)]
pub(crate) struct Network {
    connections: Connections,
    paths: Paths,
    looked_at: Moment,
    /// Set if members tell the kernel what their connections may do.
    members_tell: bool,
}

/// What one look at a class has come to.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Descriptors that were looked through.
    searched: u64,
    /// When to look, and to search, again, at the soonest.
    look_in: Option<Nanos>,
    search_in: Option<Nanos>,
    /// What members without the library have sent and received since the last look.
    pub(crate) moved: HashMap<u32, [u64; 2]>,
}

impl Looked {
    /// Adds what a look at another class has come to.
    pub(crate) fn add(&mut self, other: &Self) {
        let sooner = |one: Option<Nanos>, other| [one, other].into_iter().flatten().min();
        self.searched += other.searched;
        self.look_in = sooner(self.look_in, other.look_in);
        self.search_in = sooner(self.search_in, other.search_in);
    }
}

/// When all classes under watch are looked at again.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    search_at: Moment,
    look_at: Moment,
}

impl Pace {
    /// What is due now: whether to search, and whether to look.
    pub(crate) fn due(&self, now: Moment) -> (bool, bool) {
        (now >= self.search_at, now >= self.look_at.min(self.search_at))
    }

    /// When anything is due again.
    pub(crate) fn next(&self) -> Moment {
        self.search_at.min(self.look_at)
    }

    /// Notes what looks at all classes have come to, with searches if so; returns when the next one is due.
    pub(crate) fn done(&mut self, now: Moment, searches: bool, looked: &Looked) -> Moment {
        if searches {
            let apart = looked.searched.saturating_mul(tuning::network::SEARCH_EACH.0);
            let least = looked.search_in.unwrap_or(tuning::network::SEARCH_UNUSED);
            let apart = Nanos(apart.clamp(least.0, tuning::network::SEARCH_MOST.0));
            self.search_at = beats::again(now, apart);
        }
        self.look_at = looked.look_in.map_or(Moment::NEVER, |apart| now.plus(apart));
        self.next()
    }
}

impl Network {
    /// Looks at the connections of the members, and says what they may do; `searches` is set if new ones are looked for.
    pub(crate) fn step(
        &mut self,
        class: &Class,
        members: &HashMap<u32, Watched>,
        searches: bool,
    ) -> Looked {
        let (now, rules) = (time::now(), Rules::of(class));
        if !members.values().any(|member| rules.concern(member)) {
            self.end(now, class, members);
            return Looked::default();
        }
        let searched = if searches { self.connections.search(members, &rules) } else { 0 };
        let was_yielding = self.paths.worst().is_some();
        if !rules.yields {
            self.paths = Paths::default();
        }
        let lasted = now.since(std::mem::replace(&mut self.looked_at, now)).min(Nanos::SECOND);
        let found = self.connections.look(now, members, &mut self.paths, &rules);
        let yielding = self.paths.worst();
        if was_yielding || yielding.is_some() {
            class.uplink().say(now, yielding, if was_yielding { lasted } else { Nanos(0) });
        }
        self.have_members_tell(now, class, found.members_tell);
        let search_in = Some(if rules.limits {
            tuning::network::SEARCH_LIMITED
        } else {
            tuning::network::SEARCH
        });
        let look_in = self.look_in(&rules, &found);
        Looked { searched, look_in, search_in, moved: found.moved }
    }

    /// Says to members what their connections may do, if the kernel cannot be told from here.
    fn have_members_tell(&mut self, now: Moment, class: &Class, members_tell: bool) {
        if members_tell {
            class.path_shares().say(now, self.paths.shares());
        } else if self.members_tell {
            class.path_shares().end();
        }
        self.members_tell = members_tell;
    }

    /// How soon to look at the connections again, which is the later the more they are.
    fn look_in(&self, rules: &Rules, found: &Found) -> Option<Nanos> {
        let count = self.connections.len() as u64;
        let apart = match (found.lively, rules.limits && count > 0) {
            (true, true) => tuning::network::LOOK_LIMITED,
            (true, false) | (false, true) => tuning::network::LOOK,
            (false, false) => return None,
        };
        let most = tuning::network::LOOK_MOST.max(apart);
        Some(Nanos((count * tuning::network::LOOK_EACH.0).clamp(apart.0, most.0)))
    }

    /// Nothing is asked of the connections any more.
    fn end(&mut self, now: Moment, class: &Class, members: &HashMap<u32, Watched>) {
        if self.connections.len() > 0 {
            self.release(members);
            class.uplink().say(now, None, Nanos(0));
            self.have_members_tell(now, class, false);
        }
    }

    /// Leaves the connections of a process that is no member any more as fast as they were.
    pub(crate) fn leave(&mut self, member: &Watched) {
        self.connections.leave(member);
    }

    /// Leaves all connections as fast as they were.
    pub(crate) fn release(&mut self, members: &HashMap<u32, Watched>) {
        self.connections.release(members);
        self.paths = Paths::default();
    }
}
