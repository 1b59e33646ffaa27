//! Beats: times at which what is not urgent is done together, because waking up costs more than looking.
//!
//! The beats of each length are every other beat of half that length, so that one wake-up serves all that are due.

use discnice_units::{Moment, Nanos};

use crate::tuning::looks::{BEAT, IDLE};

/// The length of beats for what is done so far apart: at most a quarter longer, and more than half as long. `None` for what is
/// too urgent to wait for one.
#[must_use]
pub fn beat(apart: Nanos) -> Option<Nanos> {
    if apart < IDLE {
        return None;
    }
    let most = apart.0 + apart.0 / 4;
    let doublings = (most / BEAT.0).checked_ilog2()?;
    Some(Nanos(BEAT.0 << doublings))
}

/// The next beat of this length.
#[must_use]
pub fn next(now: Moment, beat: Nanos) -> Moment {
    Moment((now.0 / beat.0 + 1).saturating_mul(beat.0))
}

/// When to do again what is done so far apart: at a beat, or at a multiple of that time if it is too urgent to wait for one.
#[must_use]
pub fn again(now: Moment, apart: Nanos) -> Moment {
    next(now, beat(apart).unwrap_or(apart))
}

/// The first beat of this length that is not before a time.
#[must_use]
pub fn at_or_after(time: Moment, beat: Nanos) -> Moment {
    Moment(time.0.div_ceil(beat.0).saturating_mul(beat.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(100 * Nanos::SECOND.0 + 1);

    #[test]
    fn a_beat_is_about_as_long_as_what_it_serves_is_apart() {
        for apart in 10..2_000 {
            let apart = Nanos::from_millis(apart);
            let beat = beat(apart).unwrap();
            assert!((apart.0 * 5 / 8..=apart.0 * 5 / 4).contains(&beat.0), "{apart}: {beat}");
        }
        assert_eq!(beat(Nanos::from_millis(4)), None);
    }

    #[test]
    fn long_beats_fall_on_short_ones() {
        let lengths = [10, 20, 40, 100, 300].map(|apart| beat(Nanos::from_millis(apart)).unwrap());
        for pair in lengths.windows(2) {
            assert!(pair[0] < pair[1] && pair[1].0.is_multiple_of(pair[0].0), "{pair:?}");
        }
    }

    #[test]
    fn what_is_done_at_each_beat_goes_on_at_the_next() {
        let beat = beat(Nanos::from_millis(100)).unwrap();
        let first = next(NOW, beat);
        assert!(first > NOW && first <= NOW.plus(beat));
        assert_eq!(at_or_after(NOW, beat), first);
        assert_eq!(at_or_after(first, beat), first);
        assert_eq!(
            next(first.plus(Nanos(70_000)), beat),
            first.plus(beat),
            "though it woke up late"
        );
    }
}
