use super::seen::SPAN;
use super::*;

const MILLI: u64 = 1_000_000;

/// A link with one queue, on which a path's window and another sender put bytes, in steps of a millisecond.
struct Link {
    rate: u64,
    base: Nanos,
    queued: u64,
    now: Moment,
    moved: u64,
    smoothed: u64,
}

impl Link {
    fn new(rate: u64, base: Nanos) -> Self {
        let smoothed = base.0;
        Self { rate, base, queued: 0, now: Moment(Nanos::SECOND.0), moved: 0, smoothed }
    }

    fn trip(&self) -> Nanos {
        self.base.plus(Nanos(self.queued * Nanos::SECOND.0 / self.rate))
    }

    /// A millisecond in which others send so many bytes.
    fn step(&mut self, paths: &mut [(&mut Delay, u64)], others: u64) {
        let trip = self.trip().0;
        let wanted: Vec<u64> =
            paths.iter().map(|(path, _)| path.window() * MILLI / trip.max(1)).collect();
        let sum: u64 = wanted.iter().sum::<u64>() + others;
        let left = self.rate * MILLI / Nanos::SECOND.0;
        let carried = left.min(self.queued + sum);
        self.queued = (self.queued + sum - carried).min(self.rate * 3 / 10);
        self.now = self.now.plus(Nanos(MILLI));
        self.smoothed = (self.smoothed * 7 + self.trip().0) / 8;
        for ((path, moved), wants) in paths.iter_mut().zip(wanted) {
            let part = (wants * carried.min(sum)).checked_div(sum).unwrap_or(0);
            *moved += part;
            self.moved += part;
            if (self.now.0 / MILLI).is_multiple_of(20) {
                let (now, trip) = (self.now, Nanos(self.smoothed));
                path.look(Seen { now, trip, least: self.base, moved: *moved, sends: true });
            }
        }
    }

    fn run(&mut self, paths: &mut [(&mut Delay, u64)], millis: u64, others: u64) -> u64 {
        let before = self.moved;
        (0..millis).for_each(|_| self.step(paths, others));
        (self.moved - before) * 1000 / millis
    }
}

#[test]
fn alone_it_has_the_link_and_keeps_the_queue_short() {
    for (rate, base) in [(2_500_000, 40), (125_000_000, 1), (250_000, 100), (12_500_000, 10)] {
        let (mut link, mut path) = (Link::new(rate, Nanos::from_millis(base)), Delay::default());
        let mut paths = [(&mut path, 0)];
        link.run(&mut paths, 3_000, 0);
        let got = link.run(&mut paths, 30_000, 0);
        assert!(got >= rate * 95 / 100, "{got} of {rate} at {base} ms");
        let target = paths[0].0.target().0;
        assert!(link.trip().minus(link.base).0 <= 3 * target, "queue of {:?}", link.trip());
    }
}

#[test]
fn it_gives_way_to_others_within_some_round_trips_and_returns() {
    let (mut link, mut path) = (Link::new(2_500_000, Nanos::from_millis(40)), Delay::default());
    let mut paths = [(&mut path, 0)];
    link.run(&mut paths, 5_000, 0);
    link.run(&mut paths, 400, 2_500);
    let beside = link.run(&mut paths, 3_000, 2_500);
    assert!(beside < 2_500_000 / 10, "{beside}");
    assert!(paths[0].0.yields());
    link.run(&mut paths, 2_500, 0);
    let after = link.run(&mut paths, 3_000, 0);
    assert!(after > 2_500_000 * 9 / 10, "{after}");
}

#[test]
fn latecomers_get_a_part() {
    let (mut link, mut first) = (Link::new(2_500_000, Nanos::from_millis(40)), Delay::default());
    let mut paths = [(&mut first, 0)];
    link.run(&mut paths, 5_000, 0);
    let begun = paths[0].1;
    let mut second = Delay::default();
    let mut paths = [(&mut first, begun), (&mut second, 0)];
    link.run(&mut paths, 60_000, 0);
    let before = (paths[0].1, paths[1].1);
    let all = link.run(&mut paths, 60_000, 0);
    let (one, two) = (paths[0].1 - before.0, paths[1].1 - before.1);
    assert!(one.min(two) * 4 >= one.max(two), "{one} and {two}");
    assert!(all >= 2_500_000 * 8 / 10, "{all}");
}

#[test]
fn what_is_never_queued_is_never_held() {
    let mut path = Delay::default();
    for look in 0..1000u64 {
        let now = Moment(look * 20 * MILLI);
        let trip = Nanos(200_000 + look % 7 * 300_000);
        path.look(Seen { now, trip, least: Nanos(100_000), moved: look * 20_000_000, sends: true });
        assert!(!path.yields());
    }
    assert!(path.rate() > 2_000_000_000, "{}", path.rate());
}

#[test]
fn the_base_is_forgotten_also_while_nothing_moves() {
    let (mut base, start) = (Base::UNKNOWN, Moment(1000 * Nanos::SECOND.0));
    base.note(start, Nanos::from_millis(5));
    base.note(start.plus(Nanos(4 * SPAN.0)), Nanos::from_millis(50));
    assert_eq!(base.get(), Nanos::from_millis(5), "it is of the last five minutes");
    base.note(start.plus(Nanos(6 * SPAN.0)), Nanos::from_millis(60));
    assert_eq!(base.get(), Nanos::from_millis(50));
}
