//! How looks at the idle processes of a crowd are spread and gathered.

use discnice_units::{Moment, Nanos};

use crate::schedule::beats;
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

/// Into how many batches looks at the idle of a crowd with this interval are gathered.
fn batches(crowd: Nanos) -> u64 {
    let full = crowd.0 / (tuning::looks::CROWD.0 * tuning::looks::BATCH);
    full.next_power_of_two().min(tuning::looks::CROWD_BATCHES)
}

/// The length of beats at which some batch of a crowd is looked at, if looks at each process are so far apart; `None` if
/// they are too urgent for batches.
pub(crate) fn beat(apart: Nanos, watched: usize) -> Option<Nanos> {
    beats::beat(apart).map(|beat| Nanos(beat.0 / batches(interval(watched))))
}

/// When to look again at an idle process of a crowd with this interval, after so much time or a little more: with its batch.
pub(crate) fn next(now: Moment, apart: Nanos, crowd: Nanos) -> Moment {
    let Some(beat) = beats::beat(apart) else { return now.plus(apart) };
    let batches = batches(crowd);
    let batch = Nanos(beat.0 / batches);
    beats::next(now, batch).plus(Nanos(batch.0 * (batches - 1)))
}

/// Puts off a look at a held process that is due at `next` to the next batch of a crowd with this interval.
pub(crate) fn batched(next: Moment, now: Moment, crowd: Nanos) -> Moment {
    let grain = crowd.0 / tuning::looks::CROWD_BATCHES;
    if grain < 1_000_000 || next.0 < now.0 + grain {
        return next;
    }
    Moment(next.0.div_ceil(grain) * grain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_of_a_small_crowd_are_looked_at_together_and_those_of_a_large_one_in_turns() {
        let apart = Nanos::from_millis(100);
        let times = |watched: usize| {
            let looks = (0..1000).map(|at| next(Moment(at * 1_000_000), apart, interval(watched)));
            looks.filter(|look| look.0 < Nanos::SECOND.0).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(times(20).len(), 9);
        assert!((100..160).contains(&times(1000).len()), "{}", times(1000).len());
        let (now, soon) = (Moment(5), Nanos::from_millis(2));
        assert_eq!(next(now, soon, interval(20)), now.plus(soon), "too urgent to wait");
    }

    #[test]
    fn only_a_crowd_waits_for_batches() {
        let (now, next) = (Moment(5), Moment(100_000_001));
        assert_eq!(batched(next, now, interval(10)), next);
        let crowd = interval(1000);
        let put_off = batched(next, now, crowd);
        assert!(put_off > next && put_off.0.is_multiple_of(batch(1000).0), "{put_off:?}");
    }
}
