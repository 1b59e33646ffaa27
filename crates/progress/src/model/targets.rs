//! The calibrators of a job, one for each index of a metric set (paper sections 4.4 and 7.1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::calibrator::Calibrator;
use crate::model::ridge::MAX_METRICS;

/// The most metric sets a job can have; more would be a counter passed as index by mistake.
pub const MAX_SETS: usize = 1024;

/// Why a metric set cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadSet {
    /// No metric, or more than [`MAX_METRICS`].
    Count,
    /// The index was used before with another number of metrics.
    OtherSize,
    /// More than [`MAX_SETS`] indices.
    TooMany,
}

//= ms-manners/7.1-implicit
/// What a job has learned about its speed; this is what outlives the job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    sets: BTreeMap<u32, Calibrator>,
}

impl Targets {
    //= ms-manners/4.4-phases
    /// The calibrator of set `index`, made on first use.
    ///
    /// # Errors
    /// Says why the set cannot be used; nothing was changed.
    pub fn set(&mut self, index: u32, metrics: usize) -> Result<&mut Calibrator, BadSet> {
        if metrics == 0 || metrics > MAX_METRICS {
            return Err(BadSet::Count);
        }
        if self.sets.len() >= MAX_SETS && !self.sets.contains_key(&index) {
            return Err(BadSet::TooMany);
        }
        let set = self.sets.entry(index).or_insert_with(|| Calibrator::new(metrics));
        if set.metrics() == metrics { Ok(set) } else { Err(BadSet::OtherSize) }
    }

    /// The sets so far, by index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Calibrator)> {
        self.sets.iter().map(|(&index, set)| (index, set))
    }

    /// Returns true if every number can have come from samples; a file that fails this is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.sets.len() <= MAX_SETS && self.sets.values().all(Calibrator::is_sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ms-manners/7.1-implicit
    #[test]
    fn an_index_keeps_its_size() {
        let mut targets = Targets::default();
        assert!(targets.set(7, 2).is_ok());
        assert_eq!(targets.set(7, 3).err(), Some(BadSet::OtherSize));
        assert_eq!(targets.set(8, 0).err(), Some(BadSet::Count));
        assert_eq!(targets.set(8, MAX_METRICS + 1).err(), Some(BadSet::Count));
        assert_eq!(targets.iter().count(), 1);
    }

    #[test]
    fn an_index_that_counts_up_stays_bounded() {
        let mut targets = Targets::default();
        for index in 0..MAX_SETS as u32 {
            assert!(targets.set(index, 1).is_ok());
        }
        assert_eq!(targets.set(u32::MAX, 1).err(), Some(BadSet::TooMany));
        assert!(targets.set(5, 1).is_ok());
    }
}
