//! When to refresh (section 4.2.5): once reading in the present order has lost as much time as a refresh takes.
//!
//! As with renting and buying: a refresh at that moment has lost at most twice what the best time would have cost, however
//! fast the order decays, which cannot be known before. A refresh that gained less than half of what was hoped (files in
//! use, a file system that places them as it likes) doubles what the next one counts.

use super::Survey;

/// Upper bound of [`Worth::weight`].
const HEAVIEST: u32 = 64;

/// Figures of a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskFigures {
    /// Moving to another place.
    pub seek_seconds: f64,
    /// Reading in a row.
    pub bytes_per_second: f64,
}

impl DiskFigures {
    /// Seconds that reading everything takes, in layout order.
    #[must_use]
    pub fn seconds(&self, survey: &Survey) -> f64 {
        survey.seconds(self.seek_seconds, self.bytes_per_second)
    }

    /// Seconds by which one reading of everything would be shorter in the best layout.
    #[must_use]
    pub fn gain(&self, now: &Survey) -> f64 {
        (self.seconds(now) - self.seconds(&now.ideal())).max(0.0)
    }

    /// Seconds that a refresh takes: to read everything, to write it, to read it back.
    #[must_use]
    pub fn cost(&self, now: &Survey) -> f64 {
        self.seconds(now) + 2.0 * self.seconds(&now.ideal())
    }
}

/// What was lost since the last refresh, and what one is to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// Seconds that readings have lost.
    pub lost: f64,
    /// A refresh counts so many times what it takes; 1 unless the last ones gained too little.
    pub weight: u32,
}

impl Default for Worth {
    fn default() -> Self {
        Self { lost: 0.0, weight: 1 }
    }
}

impl Worth {
    /// Forgets what was lost for reasons that are gone: files were removed, or rewritten without a word to this history. `before`
    /// is what the last look left.
    pub fn forget(&mut self, before: u64, now: u64) {
        let (had, has) = (before.saturating_sub(1), now.saturating_sub(1));
        if has < had || has == 0 {
            self.lost *= has as f64 / had.max(1) as f64;
        }
    }

    /// Adds so many readings in the present order.
    pub fn read(&mut self, now: &Survey, disk: &DiskFigures, readings: f64) {
        self.lost += disk.gain(now) * readings.max(0.0);
    }

    //= gray-box/4.2.5-when
    /// Seconds that a refresh has to make up for.
    #[must_use]
    pub fn price(&self, now: &Survey, disk: &DiskFigures) -> f64 {
        disk.cost(now) * f64::from(self.weight)
    }

    /// Returns true if a refresh is worth it now.
    #[must_use]
    pub fn is_due(&self, now: &Survey, disk: &DiskFigures) -> bool {
        self.lost > 0.0 && self.lost >= self.price(now, disk)
    }

    /// Begins anew after a refresh.
    pub fn refreshed(&mut self, before: &Survey, after: &Survey, disk: &DiskFigures) {
        let too_little = disk.gain(after) > disk.gain(before) / 2.0;
        let weight = if too_little { self.weight.saturating_mul(2).min(HEAVIEST) } else { 1 };
        *self = Self { lost: 0.0, weight };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DISK: DiskFigures = DiskFigures { seek_seconds: 0.01, bytes_per_second: 100e6 };

    fn survey(seeks: u64) -> Survey {
        Survey { files: 1000, bytes: 100_000_000, extents: 1000, seeks }
    }

    //= gray-box/4.2.5-when
    #[test]
    fn due_once_readings_have_lost_what_a_refresh_takes() {
        // 11 s a reading instead of 1.01 s; a refresh takes 11 + 2.02 s.
        let mut worth = Worth::default();
        worth.read(&survey(1000), &DISK, 1.0);
        assert!(!worth.is_due(&survey(1000), &DISK));
        worth.read(&survey(1000), &DISK, 0.3);
        assert!(!worth.is_due(&survey(1000), &DISK), "12.987 of 13.02 s");
        worth.read(&survey(1000), &DISK, 0.1);
        assert!(worth.is_due(&survey(1000), &DISK));
    }

    #[test]
    fn a_fresh_directory_is_never_due() {
        let mut worth = Worth::default();
        worth.read(&survey(1), &DISK, 1e9);
        worth.read(&Survey::default(), &DISK, 1e9);
        assert!(!worth.is_due(&survey(1), &DISK) && !worth.is_due(&Survey::default(), &DISK));
    }

    #[test]
    fn what_was_lost_counts_only_while_its_reason_lasts() {
        let mut worth = Worth::default();
        worth.read(&survey(1000), &DISK, 100.0);
        let lost = worth.lost;
        worth.forget(1000, 1000);
        worth.forget(500, 1000);
        assert_eq!(worth.lost, lost);
        worth.forget(1001, 501);
        assert_eq!(worth.lost, lost / 2.0);
        worth.forget(1, 1);
        worth.read(&survey(1), &DISK, 100.0);
        assert!(!worth.is_due(&survey(1), &DISK), "{worth:?}");
    }

    #[test]
    fn what_gained_too_little_is_tried_half_as_often() {
        let mut worth = Worth::default();
        worth.refreshed(&survey(1000), &survey(900), &DISK);
        worth.refreshed(&survey(1000), &survey(900), &DISK);
        assert_eq!(worth.weight, 4);
        worth.read(&survey(1000), &DISK, 5.0);
        assert!(!worth.is_due(&survey(1000), &DISK));
        worth.read(&survey(1000), &DISK, 1.0);
        assert!(worth.is_due(&survey(1000), &DISK));
        worth.refreshed(&survey(1000), &survey(10), &DISK);
        assert_eq!(worth, Worth::default());
    }

    proptest! {
        /// The sum of what is lost and what refreshes take, against the best regular interval.
        #[test]
        fn never_more_than_twice_the_best_interval_and_one_day(decay in 1u64..400) {
            let aged = |days: u64| survey((1 + decay * days).min(5000));
            let days = 400u64;
            let mut worth = Worth::default();
            let (mut age, mut spent) = (0, 0.0);
            for _ in 0..days {
                age += 1;
                spent += DISK.gain(&aged(age));
                worth.read(&aged(age), &DISK, 1.0);
                if worth.is_due(&aged(age), &DISK) {
                    spent += DISK.cost(&aged(age));
                    worth.refreshed(&aged(age), &aged(0), &DISK);
                    age = 0;
                }
            }
            let every = |interval: u64| {
                let lost = |day: u64| DISK.gain(&aged(day % interval + 1));
                let costs = (days / interval) as f64 * DISK.cost(&aged(interval));
                (0..days).map(lost).sum::<f64>() + costs
            };
            let best = (1..=days).map(every).fold(f64::INFINITY, f64::min);
            prop_assert!(spent <= 2.0 * best + DISK.cost(&aged(1)), "{} of {}", spent, best);
        }
    }
}
