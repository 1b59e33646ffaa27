//! How long members were held: a histogram of their waits (Rate Windows, 4, figure 6).
//!
//! Every doubling of the time is divided into four buckets, so that a bucket is at most a quarter
//! as wide as the waits in it are long, from a fraction of a millisecond to a quarter of an hour.

use discnice_units::Nanos;

use crate::primitive::{AtomicU64, Ordering};

/// Buckets of the histogram.
pub const BUCKETS: usize = 96;
/// The first bucket with a lower bound begins at two to this power, in nanoseconds.
const FIRST: u32 = 16;
/// Two to this power buckets for each doubling.
const DIVISION: u32 = 2;

//= rate-windows/4-histogram
/// The histogram.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Waits {
    buckets: [AtomicU64; BUCKETS],
}

/// Waits in each bucket, at one moment.
pub type Counts = [u64; BUCKETS];

impl Waits {
    /// Counts one wait.
    pub fn add(&self, time: Nanos) {
        if let Some(bucket) = self.buckets.get(bucket(time)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = [0; BUCKETS];
        for (count, bucket) in counts.iter_mut().zip(&self.buckets) {
            *count = bucket.load(Ordering::Relaxed);
        }
        counts
    }
}

/// The bucket of a wait; the outermost ones take whatever lies beyond them.
fn bucket(time: Nanos) -> usize {
    let Some(doubling) = time.0.checked_ilog2().filter(|doubling| *doubling >= FIRST) else {
        return 0;
    };
    let part = (time.0 >> (doubling - DIVISION)) & ((1 << DIVISION) - 1);
    let bucket = (((doubling - FIRST) << DIVISION) as usize).saturating_add(part as usize);
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

/// Returns the shortest wait in this bucket, which ends where the next one begins.
#[must_use]
pub const fn begin(bucket: usize) -> Nanos {
    if bucket == 0 {
        return Nanos(0);
    }
    let (doubling, part) = (bucket as u32 >> DIVISION, bucket as u64 % (1 << DIVISION));
    Nanos(((1 << DIVISION) + part) << (doubling + FIRST - DIVISION))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_lies_within_its_buckets_bounds() {
        for nanos in (0..60).flat_map(|power| [1u64 << power, (1 << power) + 1, (3 << power) - 1]) {
            let found = bucket(Nanos(nanos));
            assert!(begin(found).0 <= nanos, "{nanos}");
            assert!(found == BUCKETS - 1 || nanos < begin(found + 1).0, "{nanos}");
        }
        assert_eq!((bucket(Nanos(0)), bucket(Nanos(u64::MAX))), (0, BUCKETS - 1));
    }

    #[test]
    fn bounds_rise_by_a_quarter_at_most() {
        for bucket in 1..BUCKETS - 1 {
            let (low, high) = (begin(bucket).0, begin(bucket + 1).0);
            assert!(low < high && (high - low) * 4 <= low, "{bucket}");
        }
    }
}
