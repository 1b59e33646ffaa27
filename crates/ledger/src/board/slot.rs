//! One class on the board.

use discnice_units::{Bytes, Moment, Nanos};

use crate::board::{Board, Moved};
use crate::layout::Class;
use crate::policy::Resource;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// A class that has not been seen for this long may lose its slot.
const GONE: Nanos = Nanos(60 * Nanos::SECOND.0);
/// A class that has been seen within this time has work to do.
const ACTIVE: Nanos = Nanos::SECOND;
/// What a change of a name or an inode writes besides what is charged: its part of the journal. Measured on
/// ext4 1.1 KiB for each file made, on xfs half as much.
const JOURNAL: u64 = 2 << 10;

/// What a class has been charged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Charges {
    pub(super) disk: Moved,
    pub(super) network: Moved,
}

/// A slot; belongs to the class of its nonce.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// Nonce of the owning class; zero while free.
    nonce: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    changed_names: AtomicU64,
    /// When the class was last seen at work.
    seen: AtomicU64,
    /// The media that its files are on, one bit for each.
    media: AtomicU32,
    /// Zero for a class that is held whatever the others do.
    weight: AtomicU32,
    /// The totals as the last observation found them.
    before: [AtomicU64; 5],
    /// Bytes that have come for the class and that it has not taken yet, as far as it looked.
    arrived: AtomicU64,
    /// Bytes that members have moved and that are not charged yet, as their watcher found.
    ahead: [AtomicU64; 2],
}

impl Slot {
    fn totals(&self) -> [u64; 5] {
        let [read, written, received, sent, changed_names, arrived] = [
            &self.read,
            &self.written,
            &self.received,
            &self.sent,
            &self.changed_names,
            &self.arrived,
        ]
        .map(|word| word.load(Ordering::Relaxed));
        let [ahead_read, ahead_written] =
            self.ahead.each_ref().map(|word| word.load(Ordering::Relaxed));
        [
            read.saturating_add(ahead_read),
            written.saturating_add(ahead_written),
            received.saturating_add(arrived),
            sent,
            changed_names,
        ]
    }

    fn publish(&self, class: &Class, now: Moment) {
        let total = |resource| class.meter(resource).total();
        self.read.store(total(Resource::Read), Ordering::Relaxed);
        self.written.store(total(Resource::Write), Ordering::Relaxed);
        self.received.store(total(Resource::NetDown), Ordering::Relaxed);
        self.sent.store(total(Resource::NetUp), Ordering::Relaxed);
        self.changed_names.store(class.changed_names(), Ordering::Relaxed);
        self.media.store(class.media(), Ordering::Relaxed);
        self.weight.store(if class.yields() { class.weight() } else { 0 }, Ordering::Relaxed);
        self.seen.store(now.0, Ordering::Relaxed);
    }

    /// Bytes that it has read and written in all, charged or not.
    pub(super) fn moved(&self) -> Moved {
        let [inward, outward, ..] = self.totals();
        Moved { inward, outward }
    }

    fn set_ahead(&self, ahead: Moved) {
        self.ahead[0].store(ahead.inward, Ordering::Relaxed);
        self.ahead[1].store(ahead.outward, Ordering::Relaxed);
    }

    /// What was charged since the last question.
    pub(super) fn news(&self) -> Charges {
        let mut new = [0; 5];
        for ((new, total), before) in new.iter_mut().zip(self.totals()).zip(&self.before) {
            *new = total.saturating_sub(before.swap(total, Ordering::Relaxed));
        }
        let [read, written, received, sent, changed_names] = new;
        let journal = changed_names.saturating_mul(JOURNAL);
        Charges {
            disk: Moved { inward: read, outward: written.saturating_add(journal) },
            network: Moved { inward: received, outward: sent },
        }
    }

    /// The media that its files are on.
    pub(super) fn media(&self) -> u32 {
        self.media.load(Ordering::Relaxed)
    }

    /// Its weight, if it has work to do and gives way to others.
    pub(super) fn active_weight(&self, now: Moment) -> u32 {
        let seen = Moment(self.seen.load(Ordering::Relaxed));
        if now.since(seen) > ACTIVE { 0 } else { self.weight.load(Ordering::Relaxed) }
    }

    /// Takes the slot for a class, if it is free, or if its class is gone.
    pub(super) fn claim(&self, class: &Class, now: Moment) -> bool {
        let owner = self.nonce.load(Ordering::Relaxed);
        if owner != 0 && now.since(Moment(self.seen.load(Ordering::Relaxed))) <= GONE {
            return false;
        }
        // First, so that other classes that look for a slot find the new one there.
        self.seen.store(now.0, Ordering::Relaxed);
        let (ours, order) = (class.nonce(), Ordering::Relaxed);
        if self.nonce.compare_exchange(owner, ours, order, order).is_err() {
            return false;
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.set_ahead(Moved::default());
        self.publish(class, now);
        let _ = self.news();
        true
    }
}

impl Board {
    /// Notes how many bytes have come for a class and wait in its sockets, of which it is told later:
    /// they are no others' traffic.
    pub fn note_arrived(&self, class: &Class, bytes: Bytes) {
        if let Some(slot) = self.slot(class) {
            slot.arrived.store(bytes.get(), Ordering::Relaxed);
        }
    }

    /// The slot of a class, if it has one.
    fn slot(&self, class: &Class) -> Option<&Slot> {
        let known = class.slot().and_then(|place| self.slots.get(place));
        known.filter(|slot| slot.nonce.load(Ordering::Relaxed) == class.nonce())
    }

    /// Writes what a class has been charged where every class of the user finds it.
    pub fn publish(&self, class: &Class, now: Moment) {
        class.age_media(now);
        if let Some(slot) = self.slot(class) {
            slot.publish(class, now);
            return;
        }
        if let Some(place) = self.slots.iter().position(|slot| slot.claim(class, now)) {
            self.header.used.fetch_max(place as u32 + 1, Ordering::Relaxed);
            class.set_slot(place);
        }
    }

    /// Publishes the class as [`Self::publish`] does, with what its members have moved and were not
    /// charged yet.
    pub fn publish_ahead(&self, class: &Class, now: Moment, ahead: Moved) {
        self.publish(class, now);
        if let Some(slot) = self.slot(class) {
            slot.set_ahead(ahead);
        }
    }

    /// The slots that have ever been used.
    pub(super) fn used(&self) -> &[Slot] {
        let used = self.header.used.load(Ordering::Relaxed) as usize;
        self.slots.get(..used).unwrap_or(&self.slots)
    }
}
