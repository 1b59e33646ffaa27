use super::*;
use crate::policy::contradiction::LEAST_OF;

#[test]
fn a_part_may_not_exceed_the_whole() {
    for (part, whole) in Resource::ALL.into_iter().filter_map(|one| Some((one, one.whole()?))) {
        let limits =
            Limits::UNLIMITED.with(whole, Rate::per_second(5)).with(part, Rate::per_second(10));
        let why = limits.check().unwrap_err().to_string();
        assert!(why.contains(part.option()) && why.contains(whole.option()), "{why}");
        assert!(limits.with(part, Rate::per_second(5)).check().is_ok());
        assert!(limits.with(whole, Rate::UNLIMITED).check().is_ok());
    }
}

//= rate-windows/3.1-keeps-threshold
#[test]
fn the_least_rate_is_not_above_a_limit() {
    let least = Limits::UNLIMITED.with_at_least(Some(Rate::per_second(10)));
    assert!(least.check().is_ok());
    for one in LEAST_OF {
        let why = least.with(one, Rate::per_second(9)).check().unwrap_err().to_string();
        assert!(why.contains("--at-least") && why.contains(one.option()), "{why}");
        assert!(least.with(one, Rate::per_second(10)).check().is_ok());
    }
}

#[test]
fn what_has_a_threshold_is_limited() {
    assert!(Limits::UNLIMITED.limited().is_empty());
    let limits = Limits::UNLIMITED.with(Resource::NetUp, Rate::per_second(7));
    assert_eq!(limits.limited(), Resource::NetUp.only());
    assert_eq!(limits.rate(Resource::NetUp), Rate::per_second(7));
}
