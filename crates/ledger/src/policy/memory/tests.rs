use super::*;

const MIB: u64 = 1 << 20;
const BOUNDS: Bounds = Bounds { low: 50 * MIB, high: 70 * MIB };

fn at(millis: u64) -> Moment {
    Moment(100 * Nanos::SECOND.0).plus(Nanos::from_millis(millis))
}

//= rate-windows/2-defaults
#[test]
fn what_was_not_given_follows_from_what_was() {
    let (one, two) = (Bytes::new(50 * MIB), Bytes::new(70 * MIB));
    let both = Memory::DEFAULT.with_low(one).with_high(Some(two));
    assert_eq!(both.bounds(false, 0), Some(BOUNDS));
    assert_eq!(Memory::from_word(both.to_word()), both);
    assert!(!both.contradicts_itself());
    assert!(Memory::DEFAULT.with_low(two).with_high(Some(one)).contradicts_itself());
    let high = Memory::DEFAULT.with_high(Some(two));
    assert_eq!(high.bounds(false, 0), Some(Bounds { low: 35 * MIB, high: 70 * MIB }));
    let low = Memory::DEFAULT.with_low(one);
    assert_eq!(low.bounds(false, 0), Some(Bounds { low: 50 * MIB, high: 100 * MIB }));
    assert_eq!(Memory::DEFAULT.bounds(false, 1000 * MIB), None);
    assert_eq!(
        Memory::DEFAULT.bounds(true, 1000 * MIB),
        Some(Bounds { low: 50 * MIB, high: 100 * MIB })
    );
    assert_eq!(low.with_high(None).bounds(true, 1000 * MIB), None);
    assert_eq!(Memory::DEFAULT.with_low(Bytes::new(1)).low(), Some(Bytes::new(UNIT)));
}

//= rate-windows/2-high
//= rate-windows/2-between
//= ms-manners/3-memory
#[test]
fn it_stands_from_the_high_threshold_down_to_the_low_one() {
    let mut class = Regulation::default();
    assert!(!class.decide(at(0), BOUNDS, 128 * MIB, Waited::None));
    assert!(!class.decide(at(20), BOUNDS, 70 * MIB, Waited::Others), "not above");
    assert!(class.decide(at(40), BOUNDS, 71 * MIB, Waited::Others));
    assert!(class.decide(at(60), BOUNDS, 60 * MIB, Waited::Others), "between");
    assert!(!class.decide(at(80), BOUNDS, 50 * MIB, Waited::Others), "low");
    assert!(!class.decide(at(100), BOUNDS, 60 * MIB, Waited::Others), "between, the other way");
    assert!(class.decide(at(200), BOUNDS, 80 * MIB, Waited::Tasks));
}

/// For how many of 6,000 looks, 10 ms apart, a class stands that has too much all the time, and how often.
fn stood(waited: impl Fn(u64, bool) -> Waited) -> (u32, u32) {
    let mut class = Regulation::default();
    let (mut stood, mut times) = (0, 0);
    for look in 0..6_000 {
        let before = class.stands();
        let now = class.decide(at(10 * look), BOUNDS, 128 * MIB, waited(look, before));
        stood += u32::from(now);
        times += u32::from(now && !before);
    }
    (stood, times)
}

#[test]
fn it_never_stands_for_good() {
    let (stood, times) = stood(|_, _| Waited::Others);
    assert!((5_900..6_000).contains(&stood) && (7..=9).contains(&times), "{stood} {times}");
}

#[test]
fn others_that_return_to_their_pages_now_and_then_are_waited_for() {
    let (stood, _) = stood(|look, stands| match look % 200 {
        0..20 => Waited::Others,
        _ if stands => Waited::None,
        _ => Waited::Tasks,
    });
    assert!(stood > 5_000, "{stood}");
}

#[test]
fn a_job_that_alone_is_short_of_memory_is_soon_left_alone() {
    let (stood, times) = stood(|_, stands| if stands { Waited::None } else { Waited::Tasks });
    assert!(stood < 300 && times > 3, "{stood} {times}");
}

//= rate-windows/2-no-hard-limit
#[test]
fn calm_ends_it() {
    let mut class = Regulation::default();
    assert!(class.decide(at(0), BOUNDS, 128 * MIB, Waited::Tasks));
    assert!(class.decide(at(100), BOUNDS, 128 * MIB, Waited::Tasks));
    assert!(class.decide(at(1_000), BOUNDS, 128 * MIB, Waited::None));
    assert!(!class.decide(at(1_100), BOUNDS, 128 * MIB, Waited::None));
}
