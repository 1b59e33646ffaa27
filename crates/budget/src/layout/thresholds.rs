//! The thresholds of a class, and which of them hold.

use discnice_policy::{Limits, Resource, Resources, Rule, pace};
use discnice_units::{Nanos, Rate};

use crate::layout::{Class, header};
use crate::meter::Meter;
use crate::primitive::Ordering;

/// Which way bytes move between memory and a disk.
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

    /// The rate window's length; a claim outside of what can be set counts as the default.
    #[must_use]
    pub fn window(&self) -> Nanos {
        match self.header.window.load(Ordering::Relaxed) {
            window @ 100_000_000..=60_000_000_000 => Nanos(window),
            _ => pace::WINDOW,
        }
    }

    /// The thresholds.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let none = Limits::UNLIMITED.with_loopback(self.counts_loopback());
        Resource::ALL.into_iter().fold(none, |limits, one| limits.with(one, self.meter(one).rate()))
    }

    /// Changes thresholds and window; the caller then wakes who waits on [`Class::changes`].
    pub fn set_limits(&self, now: Nanos, limits: &Limits, window: Nanos) {
        self.header.window.store(window.0, Ordering::Relaxed);
        for resource in Resource::ALL {
            self.meter(resource).set_rate(window, now, limits.rate(resource));
        }
        let loopback = if limits.loopback() { header::LOOPBACK } else { 0 };
        self.header.settings.store(loopback, Ordering::Relaxed);
        let predicting = self.header.limited.load(Ordering::Relaxed) & header::PREDICTING;
        self.header.limited.store(limits.limited().bits() | predicting, Ordering::Release);
        self.header.changes.fetch_add(1, Ordering::Release);
    }

    /// The resources whose thresholds hold now.
    #[inline]
    #[must_use]
    pub fn limited(&self) -> Resources {
        Resources::from_bits(self.header.limited.load(Ordering::Relaxed))
    }

    /// Whether calls that may reach a disk must be looked at: a threshold of disk traffic holds, or
    /// everything is predicted.
    #[inline]
    #[must_use]
    pub fn is_limited(&self) -> bool {
        const LOOKED_AT: u32 = Resources::DISK.bits() | header::PREDICTING;
        self.header.limited.load(Ordering::Relaxed) & LOOKED_AT != 0
    }

    /// Whether any threshold of these resources holds.
    #[inline]
    #[must_use]
    pub fn is_limited_in(&self, resources: Resources) -> bool {
        !self.limited().within(resources).is_empty()
    }

    /// Whether traffic within the machine counts as network traffic.
    #[must_use]
    pub fn counts_loopback(&self) -> bool {
        self.header.settings.load(Ordering::Relaxed) & header::LOOPBACK != 0
    }

    /// Whether no disk traffic is owed: then a call that costs the disk nothing need not look
    /// further.
    #[inline]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_calm_in(Resources::DISK)
    }

    /// Whether nothing of these resources is owed. Only what has a threshold can be owed, so that
    /// a class with one threshold pays for one look.
    #[inline]
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
        Rule { rate, window: self.window() }
    }

    /// Every threshold as it is in a new class.
    pub(super) fn lift_all(&self) {
        for meter in &self.meters {
            meter.set_rate(pace::WINDOW, Nanos(0), Rate::UNLIMITED);
        }
    }
}
