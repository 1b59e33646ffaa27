//! How often to look at a job that reports nothing by itself (paper section 7.2).
//!
//! If too many looks see no progress at all, the metric moves more slowly than we look, so we
//! look less often; if nearly all looks see progress, more often, down to a limit.

use discnice_units::Nanos;

/// Looks after which the interval is reconsidered.
const REVIEW: u32 = 16;
/// More than this share of looks without progress lengthens the interval.
const TOO_MANY_IDLE_FRAC: f64 = 0.25;
/// Less than this share shortens it.
const FEW_IDLE_FRAC: f64 = 0.0625;

/// The adaptive polling interval.
#[derive(Debug, Clone)]
pub struct Polling {
    interval: Nanos,
    shortest: Nanos,
    longest: Nanos,
    looks: u32,
    idle: u32,
}

impl Polling {
    /// Starts at `shortest`, which is also the lower limit; never exceeds `longest`.
    #[must_use]
    pub fn new(shortest: Nanos, longest: Nanos) -> Self {
        Self { interval: shortest, shortest, longest, looks: 0, idle: 0 }
    }

    /// Time until the next look.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    //= ms-manners/7.2-polling
    /// Tells whether the last look saw progress.
    pub fn looked(&mut self, progress: bool) {
        self.looks += 1;
        self.idle += u32::from(!progress);
        if self.looks < REVIEW {
            return;
        }
        let idle_frac = f64::from(self.idle) / f64::from(self.looks);
        if idle_frac > TOO_MANY_IDLE_FRAC {
            self.interval = Nanos(self.interval.0.saturating_mul(2)).min(self.longest);
        } else if idle_frac < FEW_IDLE_FRAC {
            self.interval = Nanos(self.interval.0 / 4 * 3).max(self.shortest);
        }
        self.looks = 0;
        self.idle = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval after an hour of looking at a counter that moves every `period` milliseconds.
    fn settles_at(period: u64) -> u64 {
        let mut polling = Polling::new(Nanos::from_millis(100), Nanos::from_millis(5000));
        let (mut at, mut seen) = (0, 0);
        while at < 3_600_000 {
            at += polling.interval().0 / 1_000_000;
            polling.looked(at / period != seen);
            seen = at / period;
        }
        polling.interval().0 / 1_000_000
    }

    //= ms-manners/7.2-polling
    #[test]
    fn follows_the_metric_within_limits() {
        assert_eq!(settles_at(10), 100);
        assert!((500..2000).contains(&settles_at(1000)), "{}", settles_at(1000));
        assert_eq!(settles_at(1_000_000), 5000);
    }
}
