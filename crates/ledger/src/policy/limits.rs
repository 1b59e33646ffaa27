//! What a class is allowed.

use discnice_units::{Bytes, Rate};

use crate::policy::choice::Pace;
use crate::policy::memory::Memory;
use crate::policy::resource::{Resource, Resources};

//= rate-windows/3.1-unfettered
/// When thresholds hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// Whatever the others do.
    #[default]
    Always,
    /// While others are busy; see [`crate::policy::throttle`].
    Busy,
}

impl When {
    /// Its name, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Busy => "busy",
        }
    }
}

/// Weight of a class that was given none.
pub const WEIGHT: u32 = 100;
/// The largest weight.
pub const WEIGHT_MAX: u32 = 10_000;

//= discnice/1-idle-use
/// Thresholds of a class; all hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    rates: [Rate; Resource::COUNT],
    loopback: bool,
    when: When,
    weight: u32,
    guest: bool,
    protects_cache: bool,
    yields_uplink: bool,
    per_child: bool,
    memory: Memory,
    disk_total: Option<Bytes>,
    at_least: Option<Rate>,
    pace: Pace,
}

impl Limits {
    /// Everything is allowed.
    pub const UNLIMITED: Self = Self {
        rates: [Rate::UNLIMITED; Resource::COUNT],
        loopback: false,
        when: When::Always,
        weight: WEIGHT,
        guest: false,
        protects_cache: false,
        yields_uplink: false,
        per_child: false,
        memory: Memory::DEFAULT,
        disk_total: None,
        at_least: None,
        pace: Pace::DEFAULT,
    };

    /// The threshold of a resource, in its units per second.
    #[must_use]
    pub const fn rate(&self, resource: Resource) -> Rate {
        self.rates[resource as usize]
    }

    //= discnice/5.3-threshold
    /// Returns these limits with another threshold for one resource.
    #[must_use]
    pub const fn with(mut self, resource: Resource, rate: Rate) -> Self {
        self.rates[resource as usize] = rate;
        self
    }

    /// Returns true if traffic within the machine counts as network traffic.
    #[must_use]
    pub const fn loopback(&self) -> bool {
        self.loopback
    }

    /// Returns these limits with traffic within the machine counted or not.
    #[must_use]
    pub const fn with_loopback(mut self, loopback: bool) -> Self {
        self.loopback = loopback;
        self
    }

    /// When the thresholds hold.
    #[must_use]
    pub const fn when(&self) -> When {
        self.when
    }

    /// Returns these limits, in force at other times.
    #[must_use]
    pub const fn with_when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Returns true if the class gives way in processor time and memory too.
    #[must_use]
    pub const fn guest(&self) -> bool {
        self.guest
    }

    /// Returns these limits with the class giving way in processor time and memory or not.
    #[must_use]
    pub const fn with_guest(mut self, guest: bool) -> Self {
        self.guest = guest;
        self
    }

    /// Returns true if what the class reads into the page cache leaves with it.
    #[must_use]
    pub const fn protects_cache(&self) -> bool {
        self.protects_cache
    }

    /// Returns these limits with the page cache protected or not.
    #[must_use]
    pub const fn with_cache_protected(mut self, protected: bool) -> Self {
        self.protects_cache = protected;
        self
    }

    /// Returns true if the class gives way on the network by the queue that its connections see.
    #[must_use]
    pub const fn yields_uplink(&self) -> bool {
        self.yields_uplink
    }

    /// Returns these limits with the class giving way on the network, or not.
    #[must_use]
    pub const fn with_uplink_yielded(mut self, yields: bool) -> Self {
        self.yields_uplink = yields;
        self
    }

    /// Returns true if each child of a member gets a class of its own with these limits.
    #[must_use]
    pub const fn per_child(&self) -> bool {
        self.per_child
    }

    //= discnice/5.1-separate-children
    /// Returns these limits with the children of members apart or together.
    #[must_use]
    pub const fn with_per_child(mut self, per_child: bool) -> Self {
        self.per_child = per_child;
        self
    }

    /// The thresholds of resident memory.
    #[must_use]
    pub const fn memory(&self) -> Memory {
        self.memory
    }

    /// Returns these limits with other thresholds of resident memory.
    #[must_use]
    pub const fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// The bytes to and from disks that pass in all; then the class is held.
    #[must_use]
    pub const fn disk_total(&self) -> Option<Bytes> {
        self.disk_total
    }

    /// Returns these limits with another bound of the bytes that pass in all.
    #[must_use]
    pub const fn with_disk_total(mut self, most: Option<Bytes>) -> Self {
        self.disk_total = most;
        self
    }

    /// The least rate: the disk traffic that the class may have however much others wait for its disks.
    #[must_use]
    pub const fn at_least(&self) -> Option<Rate> {
        self.at_least
    }

    //= rate-windows/3.1-keeps-threshold
    /// Returns these limits with another least rate.
    #[must_use]
    pub const fn with_at_least(mut self, least: Option<Rate>) -> Self {
        self.at_least = least;
        self
    }

    /// The policy, and its window.
    #[must_use]
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    //= discnice/4.1-own-policy
    /// Returns these limits with another policy or window.
    #[must_use]
    pub const fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// This class's part, relative to others' weights, while several that give way are held at
    /// once; from 1 to [`WEIGHT_MAX`].
    #[must_use]
    pub const fn weight(&self) -> u32 {
        self.weight
    }

    /// Returns these limits with another weight.
    #[must_use]
    pub const fn with_weight(mut self, weight: u32) -> Self {
        self.weight = if weight == 0 {
            1
        } else if weight > WEIGHT_MAX {
            WEIGHT_MAX
        } else {
            weight
        };
        self
    }

    /// The resources that have a threshold.
    #[must_use]
    pub fn limited(&self) -> Resources {
        let limited = Resource::ALL.into_iter().filter(|one| !self.rate(*one).is_unlimited());
        limited.fold(Resources::NONE, |set, one| set.and(one.only()))
    }

    /// The first resource with a threshold that is none of these.
    #[must_use]
    pub fn beyond(&self, seen: Resources) -> Option<Resource> {
        let limited = self.limited();
        Resource::ALL.into_iter().find(|one| limited.contains(*one) && !seen.contains(*one))
    }
}

#[cfg(test)]
mod tests;
