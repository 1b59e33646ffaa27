//! What the limits of a class leave to each of its connections.

use discnice_units::{Nanos, Rate};

use super::rules::Rules;
use crate::tuning;

/// The limits, and the connections that share them: of what is sent, and of what is received.
#[derive(Debug)]
pub(super) struct Shares {
    rates: [Rate; 2],
    active: [u64; 2],
}

impl Shares {
    /// Begins with no connection.
    pub(super) fn of(rules: &Rules) -> Self {
        Self { rates: rules.rates, active: [0; 2] }
    }

    /// Adds a connection that sends, or receives, if it does.
    pub(super) fn add(&mut self, active: [bool; 2]) {
        for (count, active) in self.active.iter_mut().zip(active) {
            *count += u64::from(active);
        }
    }

    /// Bytes a second that one may send, a little more than its share: the kernel counts headers, too. `None` without a limit.
    pub(super) fn rate(&self) -> Option<u64> {
        let [rate, _] = self.rates;
        let [active, _] = self.active;
        let above = rate.get().saturating_add(rate.get() / tuning::network::HEADERS);
        (!rate.is_unlimited()).then_some(above / active.max(1))
    }

    /// Bytes that may be on their way to one with this round trip. `None` without a limit.
    pub(super) fn window(&self, trip: Nanos) -> Option<u64> {
        let [_, rate] = self.rates;
        let [_, active] = self.active;
        let whole = rate.units_in(trip.max(tuning::network::WINDOW_TIME));
        let share = (whole / active.max(1)).max(tuning::network::WINDOW);
        (!rate.is_unlimited()).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(rate: Rate, connections: u64) -> Shares {
        let rules = Rules { yields: false, limits: true, rates: [rate; 2], loopback: false };
        let mut shares = Shares::of(&rules);
        (0..connections).for_each(|_| shares.add([true, true]));
        shares.add([false, false]);
        shares
    }

    #[test]
    fn connections_share_the_limit() {
        const RATE: u64 = 10 << 20;
        let trip = Nanos::from_millis(100);
        let (one, four) = (shares(Rate::per_second(RATE), 1), shares(Rate::per_second(RATE), 4));
        assert_eq!(one.rate(), Some(RATE + RATE / tuning::network::HEADERS));
        assert_eq!(four.rate(), one.rate().map(|rate| rate / 4));
        assert_eq!((one.window(trip), four.window(trip)), (Some(RATE / 10), Some(RATE / 40)));
    }

    #[test]
    fn windows_are_worth_a_turn_of_the_processor_however_short_the_way() {
        let shares = shares(Rate::per_second(1000), 1);
        assert_eq!(shares.window(Nanos(0)), Some(tuning::network::WINDOW));
    }

    #[test]
    fn without_a_limit_nothing_is_shared() {
        let shares = shares(Rate::UNLIMITED, 1);
        assert_eq!((shares.rate(), shares.window(Nanos::SECOND)), (None, None));
    }
}
