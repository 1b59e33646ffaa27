use super::*;

const MIB: u64 = 1 << 20;

fn ledger(dir: &tempfile::TempDir) -> Ledger {
    Ledger::open_at(&dir.path().join("grants")).unwrap()
}

//= gray-box/4.3.1-two-loops
#[test]
fn gives_what_is_there_and_takes_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let [min, max] = [MIB, 32 * MIB].map(Bytes::new);
    let demand = Demand::new(min, max, min).unwrap();
    let grant = gb_alloc_with(&demand, ledger(&dir), None).unwrap().unwrap();
    assert_eq!(grant.length() % MIB, 0);
    assert!((MIB..=32 * MIB).contains(&grant.length()), "{}", grant.length());
    drop(grant);
    assert!(gb_alloc_with(&demand, ledger(&dir), None).unwrap().is_some());
}

//= gray-box/4.3.2-increments
#[test]
fn steps_double_up_to_a_limit() {
    let most = 220 * MIB;
    let mut region = Region::reserve(most as usize).unwrap();
    let thresholds = Thresholds { first_touch: u64::MAX, second_touch: u64::MAX };
    let mut wanted = Vec::new();
    let mut extend = |size| {
        wanted.push(size / MIB);
        Ok(size)
    };
    assert_eq!(search(&mut region, 0, most, &thresholds, &mut extend).unwrap(), most);
    assert_eq!(wanted, [4, 12, 28, 60, 124, 188, 220]);
}

#[test]
fn more_than_the_machine_has_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [min, max, one] = [1 << 50, 1 << 51, 1].map(Bytes::new);
    let demand = Demand::new(min, max, one).unwrap();
    assert!(gb_alloc_with(&demand, ledger(&dir), None).unwrap().is_none());
    assert_eq!(gb_alloc(2, 1, 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

//= gray-box/4.3.1-skip
#[test]
fn one_slow_page_is_no_paging() {
    let mut watch = Watch::new(100);
    assert!([50, 500, 500, 50, 500].into_iter().all(|nanos| watch.sees(nanos)));
    assert!(!watch.is_paging());
    assert!(![500, 500].into_iter().all(|nanos| watch.sees(nanos)));
    assert!(watch.is_paging());
}

//= gray-box/4.3.2-thresholds
#[test]
fn impossible_thresholds_find_nothing() {
    let mut region = Region::reserve(16 << 20).unwrap();
    let thresholds = Thresholds { first_touch: 0, second_touch: 0 };
    let most = 16 << 20;
    let mut all = |wanted| Ok(wanted);
    assert_eq!(search(&mut region, 0, most, &thresholds, &mut all).unwrap(), 0);
    let patient = Thresholds { first_touch: u64::MAX, second_touch: u64::MAX };
    assert_eq!(search(&mut region, 0, most, &patient, &mut all).unwrap(), most);
    let mut some = |wanted: u64| Ok(wanted.min(5 << 20));
    assert_eq!(search(&mut region, 1 << 20, most, &patient, &mut some).unwrap(), 5 << 20);
}
