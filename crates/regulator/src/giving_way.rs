//! Giving way: are the others busy?
//!
//! Whichever member takes the slow way anyway, or waits, makes the observation when the last one
//! is old ([`discnice_ledger::policy::throttle::INTERVAL`]); one of several does, by compare-and-swap.
//! All that it takes is the totals of the machine and the charges on the board.

use discnice_ledger::Board;
use discnice_ledger::board::{MachineTotals, Work};
use discnice_ledger::policy::throttle::INTERVAL;
use discnice_units::{Bytes, Moment, Nanos};

use crate::host::{FileStatus, Host};
use crate::{File, Regulator};

/// Makes a new observation on the board if the last one is old. For a member.
pub fn observe<H: Host>(host: &H, board: &Board, now: Moment) {
    observe_after(host, board, (now, INTERVAL), &mut Member);
}

/// Knowledge beyond the machine's totals, of a watcher: many of the processes that it watches cannot observe.
pub trait Witness {
    /// Records on the board what all members have moved by now; returns true if all of it is known.
    fn tell(&mut self) -> bool;
    /// Adds the tasks of no class that wait for disks.
    fn add_strangers(&mut self, totals: &mut MachineTotals);
    /// Returns how many bytes the largest request has that this disk is given; zero if that is not known.
    fn largest_request(&mut self, disk: u64) -> u64;
}

/// A member, which knows only its own traffic.
struct Member;

impl Witness for Member {
    fn tell(&mut self) -> bool {
        false
    }

    fn add_strangers(&mut self, _: &mut MachineTotals) {}

    fn largest_request(&mut self, _: u64) -> u64 {
        0
    }
}

/// Makes a new observation if the last one is older than `interval`; returns true if it did.
///
/// The witness is asked before and after the disks are read. Traffic of the disks up to then is thus attributed to the
/// members that caused it; and of what the members had caused before, no more can be outstanding than the disks have in
/// progress and the page cache has unwritten.
pub fn observe_after<H: Host>(
    host: &H,
    board: &Board,
    (now, interval): (Moment, Nanos),
    witness: &mut impl Witness,
) -> bool {
    let Some(gap) = board.claim_observation_after(now, interval) else { return false };
    let unwritten = if witness.tell() { host.unwritten() } else { None };
    let before = board.charged();
    let mut totals = MachineTotals::new(host.stalled().unwrap_or_default());
    let told = host.disks(|disk| {
        let work = Work { largest: witness.largest_request(disk.id), ..disk.work };
        totals.add_disk(board, disk.id, disk.physical, (disk.moved, work));
    });
    if !told {
        return false;
    }
    if witness.tell() {
        totals.set_exact(board.charged().since(before), unwritten.unwrap_or(u64::MAX));
        witness.add_strangers(&mut totals);
    }
    if board.wants_network()
        && let Some(network) = host.network()
    {
        totals.set_network(network.namespace, network.moved);
    }
    board.enter(now, gap, &totals);
    true
}

impl<H: Host> Regulator<'_, H> {
    /// Tells the other classes what this one was charged, and follows what is known of the others
    /// than all of them.
    pub(crate) fn attend(&self, now: Moment) {
        if let Some(board) = self.board {
            board.publish(self.class, now);
        }
        if !self.class.yields() {
            return;
        }
        let changed = if let Some(board) = self.board {
            observe(self.host, board, now);
            self.class.follow(now, board)
        } else if self.class.board().is_none() {
            // Without a board, nothing tells if others are busy.
            self.class.hold_all(now)
        } else {
            // The process that has the board decides what is in force.
            return;
        };
        if changed {
            self.host.wake_all(self.class.changes());
        }
    }

    /// Notes on which disk a file lies that was found to have moved `bytes`.
    pub(crate) fn note_disk(&self, fd: i32, file: &File, bytes: u64) {
        if self.board.is_none() {
            return;
        }
        let epoch = self.class.media_epoch();
        if let Some(place) = file.place_in(epoch) {
            self.class.note_medium(place, Bytes::new(bytes));
            return;
        }
        // A descriptor that is not at hand now may be at the next call.
        let Some(status) = self.host.status(fd) else { return };
        if let Some(place) = self.note_place(status, bytes) {
            file.set_place(epoch, place);
        }
    }

    /// Notes the disk of a file that lies on one, and that `bytes` were moved there; returns its place on the board. What was
    /// charged meanwhile need not be of this file, such as /dev/null.
    pub fn note_place(&self, status: FileStatus, bytes: u64) -> Option<usize> {
        let board = self.board.filter(|_| status.disk)?;
        let find = || board.place(self.host.disk_of(status.device));
        let place = self.class.medium_of(status.device, find);
        self.class.note_medium(place, Bytes::new(bytes));
        Some(place)
    }
}
