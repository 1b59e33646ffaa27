//! Lingering: is it worth moving a guest job away from a machine that became busy? (Rate Windows, sections 1
//! and 8, after the authors' earlier work on lingering.)
//!
//! A busy episode that has lasted for a time is expected to last as long again. For that long a job that stays
//! gets the share that the machine leaves it; a job that moves loses the time of moving and then
//! gets the share of the other machine. So it moves once the episode is older than
//!
//! ```text
//! time of moving · there / (there − here)
//! ```

use discnice_units::Nanos;

/// What is known of a job on a machine in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    /// Share of its full speed that the job gets here, 0 to 1.
    pub here: f64,
    /// Share that it would get elsewhere, 0 to 1.
    pub there: f64,
    /// For how long others have been keeping it from more.
    pub busy_for: Nanos,
    /// How long it would stand still to move.
    pub moving: Nanos,
    /// How long it would still run at full speed, if that is known.
    pub left: Option<Nanos>,
}

/// What to do, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Stay: elsewhere it would be no faster.
    NoFaster,
    /// Stay: it ends sooner here than it could have moved and ended there.
    EndsSooner,
    /// Stay until the others have been busy for so long.
    Young(Nanos),
    /// Go: the others have been busy for longer than this, and are expected to remain.
    Worth(Nanos),
}

impl Decision {
    /// Returns true if the job should move.
    #[must_use]
    pub const fn goes(&self) -> bool {
        matches!(self, Self::Worth(_))
    }

    /// The age of the episode from which on moving is worth it; `None` if it never is.
    #[must_use]
    pub const fn worth_from(&self) -> Option<Nanos> {
        match self {
            Self::NoFaster | Self::EndsSooner => None,
            Self::Young(age) | Self::Worth(age) => Some(*age),
        }
    }
}

//= rate-windows/8-linger
/// Decides by what staying and moving cost. Shares out of their range count as the nearest in it.
#[must_use]
pub fn decide(situation: &Situation) -> Decision {
    let share = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
    let (here, there) = (share(situation.here), share(situation.there));
    if there <= here {
        return Decision::NoFaster;
    }
    let moving = situation.moving.0 as f64;
    if let Some(left) = situation.left {
        let left = left.0 as f64;
        // Infinite where nothing is left to it here.
        if left / here <= moving + left / there {
            return Decision::EndsSooner;
        }
    }
    let age = Nanos((moving * there / (there - here)) as u64);
    if situation.busy_for > age { Decision::Worth(age) } else { Decision::Young(age) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> Nanos {
        Nanos(count * Nanos::SECOND.0)
    }

    /// A job that gets a tenth here and all there; moving takes 18 s, which is worth it after 20.
    fn situation(busy_for: u64, left: Option<u64>) -> Situation {
        Situation {
            here: 0.1,
            there: 1.0,
            busy_for: seconds(busy_for),
            moving: seconds(18),
            left: left.map(seconds),
        }
    }

    //= rate-windows/8-linger
    #[test]
    fn short_episodes_are_waited_out() {
        let rounded = |decision: Decision| decision.worth_from().map(|age| age.0.div_ceil(1 << 20));
        assert!(matches!(decide(&situation(19, None)), Decision::Young(_)));
        assert!(matches!(decide(&situation(21, None)), Decision::Worth(_)));
        assert_eq!(rounded(decide(&situation(0, None))), Some(seconds(20).0.div_ceil(1 << 20)));
    }

    #[test]
    fn a_job_that_is_nearly_done_stays() {
        // 2 s of work take 20 s here, and moving and ending there as long.
        assert_eq!(decide(&situation(1000, Some(2))), Decision::EndsSooner);
        assert!(decide(&situation(1000, Some(3))).goes());
        let starved = Situation { here: 0.0, ..situation(1000, Some(2)) };
        assert!(decide(&starved).goes());
    }

    #[test]
    fn no_job_moves_to_where_it_is_no_faster() {
        for there in [0.1, 0.05, f64::NAN] {
            let worse = Situation { there, ..situation(1000, None) };
            assert_eq!(decide(&worse), Decision::NoFaster);
        }
        assert!(decide(&Situation { here: f64::NAN, ..situation(1000, None) }).goes());
    }

    proptest! {
        #[test]
        fn waiting_longer_never_makes_it_stay(
            here in -1.0..2.0f64, there in -1.0..2.0f64, moving: u32, age: u32, more: u32,
        ) {
            let at = |busy_for: u64| decide(&Situation {
                here, there, busy_for: seconds(busy_for), moving: seconds(moving.into()), left: None,
            });
            let (now, later) = (at(age.into()), at(u64::from(age) + u64::from(more)));
            prop_assert!(!now.goes() || later.goes());
            prop_assert_eq!(now.worth_from(), later.worth_from());
        }

        #[test]
        fn going_pays_if_the_episode_lasts_as_long_again(
            here in 0.0..1.0f64, there in 0.0..1.0f64, moving in 1u64..1000, age in 1u64..100_000,
        ) {
            let decision = decide(&Situation {
                here, there, busy_for: seconds(age), moving: seconds(moving), left: None,
            });
            let (age, moving) = (age as f64, moving as f64);
            let gain = there * (age - moving).max(0.0) - here * age;
            // Rounded to whole nanoseconds.
            prop_assert!(if decision.goes() { gain > -1e-6 } else { gain < 1e-3 }, "{gain}");
        }
    }
}
