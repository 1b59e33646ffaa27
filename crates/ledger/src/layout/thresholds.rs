//! The thresholds of a class, and which of them hold.

use discnice_units::{Moment, Nanos, Rate};

use crate::layout::{Class, header};
use crate::meter::Meter;
use crate::path_shares::PathShares;
use crate::policy::limits::WEIGHT_MAX;
use crate::policy::{Limits, Memory, Pace, Resource, Resources, Rule, When};
use crate::primitive::Ordering;
use crate::uplink::Uplink;

/// Direction in which bytes move between memory and a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a disk.
    Read,
    /// To a disk.
    Write,
}

impl From<Direction> for Resource {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Read,
            Direction::Write => Self::Write,
        }
    }
}

impl Class {
    /// The threshold of a resource and what was charged to it.
    #[inline]
    #[must_use]
    pub fn meter(&self, resource: Resource) -> &Meter {
        &self.meters[resource as usize]
    }

    /// Bytes, both ways.
    #[must_use]
    pub fn total(&self) -> &Meter {
        self.meter(Resource::Total)
    }

    /// Bytes one way.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &Meter {
        self.meter(direction.into())
    }

    /// Operations.
    #[must_use]
    pub fn operations(&self) -> &Meter {
        self.meter(Resource::Operations)
    }

    /// The policy and its window; what cannot be set counts as the default.
    #[must_use]
    pub fn pace(&self) -> Pace {
        Pace::from_word(self.header.pace.load(Ordering::Relaxed))
    }

    /// The length of the policy's window.
    #[must_use]
    pub fn window(&self) -> Nanos {
        self.pace().window()
    }

    //= rate-windows/1-hosting
    /// The thresholds.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let when = if self.is_to_yield() { When::Busy } else { When::Always };
        let none = Limits::UNLIMITED
            .with_loopback(self.counts_loopback())
            .with_when(when)
            .with_weight(self.weight())
            .with_guest(self.is_guest())
            .with_cache_protected(self.protects_cache())
            .with_uplink_yielded(self.yields_uplink())
            .with_per_child(self.is_per_child())
            .with_memory(self.memory())
            .with_disk_total(self.disk_total())
            .with_at_least(self.at_least())
            .with_pace(self.pace());
        let threshold = |one| self.meter(one).threshold();
        Resource::ALL.into_iter().fold(none, |limits, one| limits.with(one, threshold(one)))
    }

    //= discnice/4.1-degree
    /// Changes thresholds and policy; the caller then wakes the threads that wait on
    /// [`Class::changes`].
    pub fn set_limits(&self, now: Moment, limits: &Limits) {
        self.header.pace.store(limits.pace().to_word(), Ordering::Relaxed);
        for resource in Resource::ALL {
            self.meter(resource).set_threshold(limits.rate(resource));
        }
        let loopback = if limits.loopback() { header::LOOPBACK } else { 0 };
        let guest = if limits.guest() { header::GUEST } else { 0 };
        let protects = if limits.protects_cache() { header::PROTECTS_CACHE } else { 0 };
        let uplink = if limits.yields_uplink() { header::YIELDS_UPLINK } else { 0 };
        let apart = if limits.per_child() { header::PER_CHILD } else { 0 };
        let busy = if limits.when() == When::Busy { header::BUSY } else { 0 };
        self.set_settings(loopback | guest | protects | uplink | apart | busy);
        self.header.weight.store(limits.weight(), Ordering::Relaxed);
        self.header.memory.store(limits.memory().to_word(), Ordering::Relaxed);
        self.set_disk_total(limits.disk_total());
        self.set_at_least(limits.at_least());
        // A class that gives way runs free until the others are found busy.
        self.hold(now, self.limited(), (1, 1));
    }

    /// Nothing passes as unused allowance of the time before `moment`, which may be yet to come.
    pub fn forfeit_credit(&self, moment: Moment) {
        Resource::ALL.iter().for_each(|resource| self.meter(*resource).forfeit(moment));
    }

    /// This class's part, relative to others' weights, while several that give way are held at once.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.header.weight.load(Ordering::Relaxed).clamp(1, WEIGHT_MAX)
    }

    #[inline]
    fn has(&self, setting: u32) -> bool {
        self.header.settings.load(Ordering::Relaxed) & setting != 0
    }

    /// Returns true if the user wants the thresholds to hold only while others are busy.
    pub(super) fn is_to_yield(&self) -> bool {
        self.has(header::BUSY)
    }

    /// Returns true if traffic within the machine counts as network traffic.
    #[must_use]
    pub fn counts_loopback(&self) -> bool {
        self.has(header::LOOPBACK)
    }

    /// Returns true if the class gives way in processor time and memory too.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        self.has(header::GUEST)
    }

    /// Returns true if what the class reads into the page cache leaves with it.
    #[inline]
    #[must_use]
    pub fn protects_cache(&self) -> bool {
        self.has(header::PROTECTS_CACHE)
    }

    /// Returns true if the class gives way on the network by the queue that its connections see.
    #[must_use]
    pub fn yields_uplink(&self) -> bool {
        self.has(header::YIELDS_UPLINK)
    }

    /// Returns true if each child of a member gets a class of its own with these limits.
    #[must_use]
    pub fn is_per_child(&self) -> bool {
        self.has(header::PER_CHILD)
    }

    /// How its watcher says that it gives way there.
    #[must_use]
    pub fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// What its watcher says that members are to have the kernel see to there.
    #[must_use]
    pub fn path_shares(&self) -> &PathShares {
        &self.path_shares
    }

    /// Notes that a member opens the file with this key; returns whether one did lately.
    #[must_use]
    pub fn has_seen(&self, key: u64) -> bool {
        self.seen.note(key)
    }

    //= rate-windows/2-run-time
    /// The thresholds of resident memory.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory::from_word(self.header.memory.load(Ordering::Relaxed))
    }

    /// Returns true if there is no debt of disk traffic, and not all is used up: then a call that costs the disk nothing
    /// need not look further.
    #[inline(always)]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        !self.is_used_up() && self.is_calm_in(Resources::DISK)
    }

    /// Returns true if there is no debt of these resources. Only what has a threshold can have
    /// debt, so a class with one threshold pays for one look.
    #[inline(always)]
    #[must_use]
    pub fn is_calm_in(&self, resources: Resources) -> bool {
        let mut rest = self.limited().within(resources).bits();
        while rest != 0 {
            let place = rest.trailing_zeros() as usize;
            if self.meters.get(place).is_some_and(|meter| meter.frontier().0 != 0) {
                return false;
            }
            rest &= rest - 1;
        }
        true
    }

    /// The rule that the largest piece of work in this direction follows.
    #[must_use]
    pub fn rule(&self, direction: Direction) -> Rule {
        let rate = self.total().rate().min(self.direction(direction).rate());
        self.pace().rule(rate)
    }

    /// Every threshold as it is in a new class.
    pub(super) fn lift_all(&self) {
        for meter in &self.meters {
            meter.set_threshold(Rate::UNLIMITED);
            meter.set_rate(Pace::DEFAULT, Moment::FIRST, Rate::UNLIMITED);
        }
    }
}
