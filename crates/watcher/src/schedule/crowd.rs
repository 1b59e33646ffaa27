//! How looks at the idle processes of a crowd are spread and gathered.

use discnice_units::Nanos;

use crate::tuning;

/// How far looks at one process that does nothing are apart, of so many that are watched in all.
pub(crate) fn interval(watched: usize) -> Nanos {
    Nanos(tuning::looks::CROWD.0 * watched as u64)
}

/// How far batches of such looks are apart.
#[must_use]
pub fn batch(watched: usize) -> Nanos {
    Nanos(interval(watched).0 / tuning::looks::CROWD_BATCHES)
}

/// Puts off a look that is due at `next` to the next batch of a crowd with this interval.
pub(crate) fn batched(next: Nanos, now: Nanos, crowd: Nanos) -> Nanos {
    let grain = crowd.0 / tuning::looks::CROWD_BATCHES;
    if grain < 1_000_000 || next.0 < now.0 + grain {
        return next;
    }
    Nanos(next.0.div_ceil(grain) * grain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_crowd_waits_for_batches() {
        let (now, next) = (Nanos(5), Nanos(100_000_001));
        assert_eq!(batched(next, now, interval(10)), next);
        let crowd = interval(1000);
        let put_off = batched(next, now, crowd);
        assert!(put_off > next && put_off.0.is_multiple_of(batch(1000).0), "{put_off:?}");
    }
}
