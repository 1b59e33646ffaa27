use proptest::prelude::*;

use super::super::profile::ProfileName;
use super::*;
use crate::random::Random;

const MB: u64 = 1_000_000;
const SIZE: u64 = 4 << 30;

fn hdd() -> Model {
    Model::new(ProfileName::Hdd.profile(), SIZE)
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

/// Reads `count` requests of `length` one after the other; returns the end.
fn read_in_turn(model: &mut Model, mut now: Moment, offsets: &[u64], length: u64) -> Moment {
    for offset in offsets {
        now = model.accept(now, Operation::Read, *offset, length);
    }
    now
}

#[test]
fn a_sequential_read_runs_at_the_transfer_rate() {
    let mut model = hdd();
    let offsets: Vec<u64> = (0..800).map(|n| n * 256 * 1024).collect();
    let end = read_in_turn(&mut model, Moment::FIRST, &offsets, 256 * 1024);
    let expected = 800.0 * 262_144.0 / 48e6;
    assert!(
        (end.since(Moment::FIRST).as_secs_f64() / expected - 1.0).abs() < 0.001,
        "{end:?} for {expected}"
    );
    assert_eq!(model.counters().look_ahead_hits, 799);
    assert_eq!(model.counters().seeks, 0);
}

#[test]
fn a_random_read_costs_seek_and_half_a_turn_on_average() {
    let mut model = hdd();
    let mut random = Random::new(1);
    let offsets: Vec<u64> = (0..2000).map(|_| random.below(SIZE - 4096)).collect();
    let end = read_in_turn(&mut model, Moment::FIRST, &offsets, 4096);
    let each = millis(end.since(Moment::FIRST)) / 2000.0;
    assert!((10.0..17.0).contains(&each), "{each} ms a read");
    let rotation = model.counters().rotation_ns as f64 / 2000.0 / 1e6;
    assert!((3.7..4.7).contains(&rotation), "{rotation} ms of rotation a read");
}

#[test]
fn seek_time_is_the_documented_curve() {
    let model = hdd();
    assert_eq!(model.seek_time(0), Nanos(0));
    assert!((millis(model.seek_time(SIZE)) - 15.0).abs() < 1e-6);
    assert!((millis(model.seek_time(SIZE / 4)) - 7.9).abs() < 1e-6);
}

#[test]
fn look_ahead_goes_on_without_requests() {
    let mut model = hdd();
    let first = model.accept(Moment::FIRST, Operation::Read, 0, 4096);
    // 5 ms later 240 KB have passed the head: 64 KiB of them are there at once.
    let later = first.plus(Nanos::from_millis(5));
    assert_eq!(model.accept(later, Operation::Read, 4096, 65_536), later);
    // The whole window is full after 11 ms, and what lies after it needs the platter to come round.
    let much_later = later.plus(Nanos::from_millis(200));
    let window = 4096 + 65_536 + 512 * 1024;
    assert_eq!(
        model.accept(much_later, Operation::Read, 69_632, window - 69_632),
        much_later,
        "the buffer is full"
    );
    let next = model.accept(much_later, Operation::Read, window, 4096);
    assert!(millis(next.since(much_later)) <= 8.5, "at most a turn: {}", next.since(much_later));
}

#[test]
fn two_streams_lose_most_of_the_rate() {
    let mut model = hdd();
    let offsets: Vec<u64> =
        (0..400u64).map(|n| (n / 2) * 256 * 1024 + (n % 2) * 400 * MB).collect();
    let end = read_in_turn(&mut model, Moment::FIRST, &offsets, 256 * 1024);
    let rate = 400.0 * 262_144.0 / end.since(Moment::FIRST).as_secs_f64() / 1e6;
    assert!((12.0..24.0).contains(&rate), "{rate} MB/s together");
}

#[test]
fn queued_writes_stream_and_lonely_ones_miss_a_turn() {
    let mut queued = hdd();
    let mut end = Moment::FIRST;
    for n in 0..100 {
        end = queued.accept(Moment::FIRST, Operation::Write, n * 65_536, 65_536);
    }
    assert!((millis(end.since(Moment::FIRST)) - 136.5).abs() < 1.0, "{end:?}");
    let mut lonely = hdd();
    let mut now = Moment::FIRST;
    for n in 0..100 {
        now = lonely
            .accept(now.plus(Nanos(100_000)), Operation::Write, n * 65_536, 65_536)
            .plus(Nanos(0));
    }
    assert!(millis(now.since(Moment::FIRST)) > 100.0 * 8.0, "{now:?}");
}

#[test]
fn a_write_ends_the_look_ahead() {
    let mut model = hdd();
    let end = model.accept(Moment::FIRST, Operation::Read, 0, 4096);
    let end = model.accept(end, Operation::Write, 100 * MB, 4096);
    model.accept(end, Operation::Read, 4096, 4096);
    assert_eq!(model.counters().look_ahead_hits, 0);
}

#[test]
fn latency_is_pipelined() {
    let mut ssd = Model::new(ProfileName::Ssd.profile(), SIZE);
    let first = ssd.accept(Moment::FIRST, Operation::Read, 500 * MB, 5000);
    let second = ssd.accept(Moment::FIRST, Operation::Read, 0, 5000);
    assert_eq!(first, Moment(80_000 + 10_000));
    assert_eq!(second, Moment(80_000 + 20_000));
}

proptest! {
    /// Whatever is asked: answers in order, never before the data can have passed the head.
    #[test]
    fn answers_keep_their_order(
        requests in proptest::collection::vec(
            (0u64..50_000_000, any::<bool>(), 0u64..SIZE, 1u64..1_048_576), 1..60),
    ) {
        for name in [ProfileName::Hdd, ProfileName::Ssd, ProfileName::Nfs] {
            let mut model = Model::new(name.profile(), SIZE);
            let (mut now, mut last) = (Moment::FIRST, Moment::FIRST);
            for (gap, write, offset, length) in &requests {
                now = now.plus(Nanos(*gap));
                let operation = if *write { Operation::Write } else { Operation::Read };
                let answer = model.accept(now, operation, *offset, *length);
                prop_assert!(answer >= now && answer >= last);
                last = answer;
            }
            prop_assert!(model.counters().busy_ns <= last.0);
        }
    }
}
