//! What a class under watch says on the board, and how it follows what is seen there of the others.
//!
//! Programs that are held from outside, or below a filter, or that read by page faults alone, make
//! no observations. Their watcher does, for all members alike.

use discnice_ledger::Board;
use discnice_ledger::board::Moved;
use discnice_sys::{deadline, futex, time, traffic};
use discnice_units::{Bytes, Moment, Nanos};

use super::Watch;
use crate::member::Watched;
use crate::network::Looked;
use crate::schedule::crowd;
use crate::tuning;

/// What was seen of a class's traffic.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// When any of it was seen last.
    moved_at: Moment,
    /// Calls on names and inodes that were counted by then. What they change is written with the journal, in no account.
    operations: u64,
    /// What the class was charged, and its members were ahead of that, when it was told last.
    told: (u64, Moved),
    /// When it was last asked where the files lie.
    placed_at: Moment,
    /// Set if it gave way at the last look; and set if that has changed since last asked.
    held: bool,
    changed: bool,
}

impl Traffic {
    /// A member was last seen to move something then.
    pub(super) fn note(&mut self, seen: Moment) {
        self.moved_at = self.moved_at.max(seen);
    }

    /// The class has made so many calls on names and inodes in all.
    pub(super) fn note_operations(&mut self, now: Moment, made: u64) {
        if made != std::mem::replace(&mut self.operations, made) {
            self.moved_at = now;
        }
    }
}

impl Watch {
    /// How often the others are to be looked at for this class; `None` while it does not matter.
    pub(crate) fn interval(&self, now: Moment) -> Option<Nanos> {
        // The class itself is not touched without need: a thousand of them are in no cache.
        if !self.minds(now) || !self.class.yields() {
            return None;
        }
        Some(if self.is_active(now) {
            tuning::others::OBSERVE_ACTIVE
        } else {
            tuning::others::OBSERVE_HELD
        })
    }

    fn minds(&self, now: Moment) -> bool {
        self.traffic.held || self.is_active(now)
    }

    /// Whether it has moved anything of late.
    fn is_active(&self, now: Moment) -> bool {
        now < self.traffic.moved_at.plus(tuning::others::ACTIVE_FOR)
    }

    /// Whether other limits hold than when this was last asked, as others are busy, or are no longer.
    #[must_use]
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.traffic.changed)
    }

    /// Looks at all members, of so many processes that are watched in all, and says on the board what they have moved;
    /// returns whether all are known.
    pub(crate) fn tell(&mut self, now: Moment, watched: usize, board: &Board) -> bool {
        if !self.minds(now) {
            return true;
        }
        let ids: Vec<u32> = self.members.all.keys().copied().collect();
        for id in ids {
            deadline::renew();
            self.step_member(id, now, crowd::interval(watched));
        }
        let ahead =
            self.members.all.values().map(Watched::ahead).fold(Moved::default(), |all, own| {
                all.plus(Moved { inward: own.read, outward: own.written })
            });
        let charged = self.class.total().total();
        if self.traffic.told != (charged, ahead) {
            self.traffic.told = (charged, ahead);
            self.traffic.moved_at = now;
            board.publish_ahead(self.class, now, ahead);
        }
        if self.is_active(now) && now >= self.traffic.placed_at.plus(tuning::others::DISKS_AGAIN) {
            self.traffic.placed_at = now;
            self.note_places(now, board);
        }
        self.discovery.has_begun
    }

    /// Has the members, of so many processes that are watched in all, keep to the class's limits of the network, and give way
    /// there.
    pub(crate) fn mind_network(&mut self, searches: bool, watched: usize) -> Looked {
        let looked = self.network.step(self.class, &self.members.all, searches);
        for (id, moved) in &looked.moved {
            let now = time::now();
            let Some(member) = self.members.all.get_mut(id) else { continue };
            member.charge_traffic(now, *moved);
            self.traffic.note(now);
            self.step_member(*id, now, crowd::interval(watched));
            // The class is to be looked at when the member is.
            self.traffic.changed = true;
        }
        looked
    }

    /// Whether a process is watched.
    pub fn has(&self, id: u32) -> bool {
        self.members.all.contains_key(&id)
    }

    /// Notes the disks with files of the members that moved something of late, if what they moved is not known by their calls:
    /// each of these disks may have got an equal part of it.
    fn note_places(&self, now: Moment, board: &Board) {
        let unplaced = self.class.unplaced().get();
        if unplaced == 0 {
            return;
        }
        let recent = |member: &&Watched| {
            now < member.seen_moving().plus(tuning::others::ACTIVE_FOR)
                && member.moved() >= tuning::others::STARTUP_BYTES
        };
        let recent = self.members.all.values().filter(recent);
        let mut devices: Vec<u64> = recent.flat_map(Watched::disks).collect();
        devices.sort_unstable();
        devices.dedup();
        let part = Bytes::new(unplaced / (devices.len() as u64).max(1));
        for device in devices {
            self.class.note_medium(board.place(traffic::disk_of_id(device)), part);
        }
    }

    /// Follows what is seen on the board.
    pub(crate) fn attend(&mut self, now: Moment, board: &Board) {
        if !self.minds(now) {
            return;
        }
        if self.class.yields() && self.class.follow(now, board) {
            futex::wake_all(self.class.changes());
        }
        // It does not matter which member saw it first.
        let held = self.class.yields() && self.class.is_limited();
        self.traffic.changed |= held != std::mem::replace(&mut self.traffic.held, held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_only_changes_names_is_seen_at_work() {
        let mut traffic = Traffic::default();
        for (now, made, moved_at) in [(5, 0, 0), (6, 64, 6), (7, 64, 6), (8, 128, 8)] {
            traffic.note_operations(Moment(now), made);
            assert_eq!(traffic.moved_at, Moment(moved_at), "{made} calls at {now}");
        }
    }
}
