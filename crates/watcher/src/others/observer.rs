//! Observations for all classes under watch.
//!
//! What others move is what the disks move less what members did. Members that regulate themselves
//! look at the disks; those that are held from outside, or that make no calls, cannot. Their
//! watcher is always there, and knows of all members alike what the kernel accounts, charged or
//! not.

use discnice_ledger::Board;
use discnice_ledger::board::MachineTotals;
use discnice_regulator::{Linux, Witness, observe_after};
use discnice_sys::time;
use discnice_units::Moment;

use crate::Watch;
use crate::network::{Looked, Pace};
use crate::others::requests::Requests;
use crate::others::waiting_tasks::WaitingTasks;
use crate::tuning;

/// What looks at the disks for classes under watch.
#[derive(Debug)]
pub struct Observer {
    board: Option<&'static Board>,
    due: Moment,
    strangers: WaitingTasks,
    requests: Requests,
    network: Pace,
}

impl Observer {
    /// Creates one that looks at this board, or, without one, does nothing.
    #[must_use]
    pub fn at(board: Option<&'static Board>) -> Self {
        let (strangers, requests) = (WaitingTasks::default(), Requests::default());
        Self { board, due: Moment::FIRST, strangers, requests, network: Pace::default() }
    }

    /// Makes an observation if one is due for any of these classes, of which so many processes are watched in all. Returns
    /// when to be called again.
    pub fn step(
        &mut self,
        now: Moment,
        watched: usize,
        watches: &mut [impl AsMut<Watch>],
    ) -> Moment {
        let network = self.mind_network(now, watched, watches);
        self.observe(now, watched, watches).min(network)
    }

    /// Has classes keep to their limits of the network, and give way there.
    fn mind_network(
        &mut self,
        now: Moment,
        watched: usize,
        watches: &mut [impl AsMut<Watch>],
    ) -> Moment {
        let (searches, looks) = self.network.due(now);
        if !looks {
            return self.network.next();
        }
        let mut looked = Looked::default();
        for each in watches {
            looked.add(&each.as_mut().mind_network(searches, watched));
        }
        self.network.done(now, searches, &looked)
    }

    fn observe(
        &mut self,
        now: Moment,
        watched: usize,
        watches: &mut [impl AsMut<Watch>],
    ) -> Moment {
        let Some(board) = self.board else { return Moment::NEVER };
        let mut interval = None;
        for each in &mut *watches {
            interval = [interval, each.as_mut().interval(now)].into_iter().flatten().min();
        }
        let Some(interval) = interval else { return Moment::NEVER };
        if now < self.due {
            return self.due.min(now.plus(interval));
        }
        self.due = now.plus(interval);
        let (strangers, requests) = (&mut self.strangers, &mut self.requests);
        requests.forget_old(now);
        let mut sight = Sight { watches, watched, board, strangers, requests };
        observe_after(&Linux, board, (now, interval), &mut sight);
        // Also what a member has seen meanwhile.
        watches.iter_mut().for_each(|each| each.as_mut().attend(now, board));
        self.due
    }
}

/// What is seen of the classes under watch, of which so many processes are watched in all, and of all others.
struct Sight<'a, W> {
    watches: &'a mut [W],
    watched: usize,
    board: &'static Board,
    strangers: &'a mut WaitingTasks,
    requests: &'a mut Requests,
}

impl<W: AsMut<Watch>> Witness for Sight<'_, W> {
    fn tell(&mut self) -> bool {
        let mut known = self.watched <= tuning::others::KNOWN_AT_ONCE;
        for each in &mut *self.watches {
            known &= each.as_mut().tell(time::now(), self.watched, self.board);
        }
        known
    }

    fn add_strangers(&mut self, totals: &mut MachineTotals) {
        let Self { watches, board, strangers, .. } = self;
        let is_member = |id| watches.iter_mut().any(|each| each.as_mut().has(id));
        strangers.look(time::now(), is_member, |disks| totals.add_stranger(board, disks));
    }

    fn largest_request(&mut self, disk: u64) -> u64 {
        self.requests.largest(disk)
    }
}
