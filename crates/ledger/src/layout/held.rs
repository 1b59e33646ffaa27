//! Which thresholds hold now: all that are set, or those of media where others are busy.

use discnice_units::{Moment, Nanos, Rate};

use crate::board::{ALL_DISKS, Board, Medium, NETWORK};
use crate::layout::Class;
use crate::layout::header::{COUNTS, MINDS_TRAFFIC, PREDICTING, TRACED, YIELDS};
use crate::passed::Passed;
use crate::policy::occupancy::Costs;
use crate::policy::{Resource, Resources, occupancy, throttle};
use crate::primitive::Ordering;
use crate::trace::{Record, Trace, Why};

/// What is held while others use the disk.
const ON_DISK: Resources = Resources::DISK.and(Resource::Metadata.only());

/// How often thresholds are put in force at most where others change them at the same time.
const PASSES: u32 = 4;

/// Because of any of these, calls that may reach a disk must be looked at.
const LOOKED_AT: u32 = Resources::DISK.bits() | PREDICTING | COUNTS;

impl Class {
    /// Returns the resources with a threshold in force now.
    #[inline]
    #[must_use]
    pub fn limited(&self) -> Resources {
        Resources::from_bits(self.header.limited.load(Ordering::Relaxed))
    }

    /// Returns true if calls that may reach a disk must be looked at: a threshold of disk traffic
    /// is in force, everything is predicted, or there is a bound of what may be moved in all.
    #[inline]
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & LOOKED_AT != 0
    }

    /// Returns true if any threshold of these resources is in force.
    #[inline]
    #[must_use]
    pub fn is_limited_in(&self, resources: Resources) -> bool {
        !self.limited().within(resources).is_empty()
    }

    /// Returns true if network traffic must be looked at: a threshold of it is in force, or will be
    /// while others are busy.
    #[inline]
    #[must_use]
    pub fn minds_traffic(&self) -> bool {
        const MINDED: u32 = Resources::NETWORK.bits() | MINDS_TRAFFIC;
        self.header.limited.load(Ordering::Relaxed) & MINDED != 0
    }

    /// Returns true if nothing is limited and no member has to observe if others are busy.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & (LOOKED_AT | YIELDS) == 0
    }

    /// Returns true if no threshold of any resource is in force, and no member has to observe the
    /// others.
    #[inline]
    #[must_use]
    pub fn is_unheld(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) == 0
    }

    /// Returns true if members record their calls.
    #[inline]
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & TRACED != 0
    }

    /// How many calls of the members went on for which reason.
    #[must_use]
    pub fn passed(&self) -> &Passed {
        &self.passed
    }

    /// The last calls of the members.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Has the members record their calls until this moment.
    pub fn trace_until(&self, moment: Moment) {
        self.trace.read_until(moment);
        self.header.limited.fetch_or(TRACED, Ordering::Release);
    }

    /// Adds a call to the trace, or ends the trace if nothing has asked for it any more.
    pub fn record(&self, record: &Record) {
        if self.trace.is_read(record.at) {
            let paced = matches!(record.why, Why::Reserved | Why::Slices | Why::Account);
            let kept = paced && record.waited > Nanos(0) && self.keeps_least(record.at);
            let why = if kept { Why::Least } else { record.why };
            self.trace.write(&Record { why, ..*record });
        } else {
            self.header.limited.fetch_and(!TRACED, Ordering::Release);
        }
    }

    /// Returns true if thresholds of disk traffic are in force, no others, and nothing is predicted.
    #[inline]
    #[must_use]
    pub fn is_held_on_disk_alone(&self) -> bool {
        const ON_DISK_ALONE: u32 = Resources::DISK.bits() | COUNTS;
        let limited = self.header.limited.load(Ordering::Relaxed);
        limited & !ON_DISK_ALONE == 0 && limited != 0
    }

    /// Returns true if the thresholds are in force only while others are busy.
    #[inline]
    #[must_use]
    pub fn yields(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & YIELDS != 0
    }

    /// Applies the last observation on the board; returns true if that changed what is in force, so
    /// that the caller wakes the threads that wait on [`Class::changes`].
    pub fn follow(&self, now: Moment, board: &Board) -> bool {
        if !self.follows(board.observed()) {
            return false;
        }
        let disks = || self.disks(board);
        let mut held = Resources::NONE;
        if disks().any(Medium::is_throttled) {
            held = held.and(ON_DISK);
        }
        if board.media().get(NETWORK).is_some_and(Medium::is_throttled) {
            held = held.and(Resources::NETWORK);
        }
        let all = disks().map(Medium::weights).max().unwrap_or(0);
        self.hold(now, held, (self.weight(), all))
    }

    /// For which part of the time the busiest of its disks has something to do, in thousandths.
    #[must_use]
    pub fn load(&self, board: &Board) -> u32 {
        self.disks(board).map(Medium::load).max().unwrap_or(0)
    }

    /// What a piece of work takes on the slowest of its disks.
    #[must_use]
    pub fn disk_costs(&self, board: &Board) -> Costs {
        let overhead = self.disks(board).filter_map(Medium::overhead).max();
        let transfer = self.disks(board).filter_map(Medium::transfer).min();
        Costs {
            overhead: overhead.unwrap_or(occupancy::SEEK),
            transfer: transfer.unwrap_or(occupancy::TRANSFER),
        }
    }

    /// Notes how long a piece of work took.
    pub fn note_piece(&self, board: &Board, took: Nanos, bytes: u64) {
        self.disks(board).for_each(|medium| medium.note_piece(took, bytes));
    }

    /// The disks of the class where others are given way to now.
    pub fn throttled<'b>(&self, board: &'b Board) -> impl Iterator<Item = &'b Medium> {
        self.disks(board).filter(|medium| medium.is_throttled())
    }

    /// The media of the board that the class's files are on.
    fn disks<'b>(&self, board: &'b Board) -> impl Iterator<Item = &'b Medium> {
        let media = self.media();
        // Until it is known where the files are, they may be anywhere.
        let media = if media == 0 { 1 << ALL_DISKS } else { media };
        let own = move |(place, _): &(usize, &Medium)| media >> place & 1 != 0;
        board.media().iter().enumerate().filter(own).map(|(_, medium)| medium)
    }

    /// A part of a resource's threshold, but no less than the least rate.
    fn no_less(&self, resource: Resource, part: Rate) -> Rate {
        match self.at_least().filter(|_| resource.is_bytes() && Resources::DISK.contains(resource))
        {
            Some(least) => part.max(least).min(self.meter(resource).threshold()),
            None => part,
        }
    }

    /// Holds everything that has a threshold, because the others' traffic is unknown.
    pub fn hold_all(&self, now: Moment) -> bool {
        self.hold(now, Resources::ALL, (1, 1))
    }

    /// Puts thresholds in force: all of them, or, of a class that gives way, those of these resources, each at the fraction
    /// that `share.0` is of `share.1`; returns true if that changed anything.
    pub(super) fn hold(&self, now: Moment, held: Resources, share: (u32, u32)) -> bool {
        // Until nothing changes: another process may change the limits meanwhile, and what was read before must not stay.
        (0..PASSES).take_while(|_| self.put_in_force(now, held, share)).count() > 0
    }

    /// Puts the thresholds in force once.
    ///
    /// Several members may do so at once. Each step is the same for all of them, so the order does
    /// not matter, nor does it if one is killed in between.
    fn put_in_force(&self, now: Moment, held: Resources, share: (u32, u32)) -> bool {
        let yields = self.is_to_yield();
        let (held, (weight, all)) = if yields { (held, share) } else { (Resources::ALL, (1, 1)) };
        let (pace, mut changed, mut limited) = (self.pace(), false, Resources::NONE);
        let mut word = if yields { YIELDS } else { 0 };
        for resource in Resource::ALL {
            let meter = self.meter(resource);
            if yields && Resources::NETWORK.contains(resource) && !meter.threshold().is_unlimited()
            {
                word |= MINDS_TRAFFIC;
            }
            let rate = if held.contains(resource) {
                self.no_less(resource, throttle::share(meter.threshold(), weight, all))
            } else {
                Rate::UNLIMITED
            };
            let rate = rate.min(self.ceiling(now, resource));
            if !rate.is_unlimited() {
                limited = limited.and(resource.only());
            }
            if meter.rate() != rate {
                meter.set_rate(pace, now, rate);
                changed = true;
            }
        }
        word |= limited.bits() | self.used_up();
        if self.disk_total().is_some() {
            word |= COUNTS;
        }
        let (order, load) = (Ordering::AcqRel, Ordering::Acquire);
        let replaced = self.header.limited.fetch_update(order, load, |old| {
            let new = word | old & (PREDICTING | TRACED);
            (new != old).then_some(new)
        });
        changed |= replaced.is_ok();
        if changed {
            self.header.changes.fetch_add(1, Ordering::Release);
        }
        changed
    }
}
