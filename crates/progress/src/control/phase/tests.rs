use super::*;
use std::fs;

fn metrics(texts: &[&str]) -> Vec<Metric> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn what_is_accepted_and_refused() {
    for good in ["moving", "file:/run/phase", r"match:/log:^== (\w+)"] {
        assert_eq!(good.parse::<Phases>().map(|phases| phases.to_string()), Ok(good.into()));
    }
    for bad in ["", "file", "file:", "moving:x", "match:/log", "match::x", "match:/log:(", "x"] {
        assert!(bad.parse::<Phases>().is_err(), "{bad}");
    }
    let of_one = metrics(&["mark@lines:/log"]);
    assert!(Phases::check(None, &of_one).is_err());
    assert!(Phases::check(Some(&"moving".parse().unwrap()), &of_one).is_err());
    assert!(Phases::check(Some(&"file:/phase".parse().unwrap()), &of_one).is_ok());
    assert!(Phases::check(None, &metrics(&["cpu"])).is_ok());
}

//= ms-manners/4.4-outside-phases
#[test]
fn a_file_tells_the_phase_and_each_has_its_own_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("phase");
    let phases = format!("file:{}", path.display()).parse().unwrap();
    let metrics = metrics(&["mark@lines:/marks", "sweep@lines:/sweeps", "cpu"]);
    let mut follower = Follower::new(Some(&phases), &metrics);
    let (phase, problem) = follower.look(vec![1.0, 2.0, 3.0]);
    assert!(problem.is_some() && phase.index == 0 && phase.values == [3.0]);
    fs::write(&path, "mark\n").unwrap();
    let (mark, problem) = follower.look(vec![4.0, 5.0, 6.0]);
    assert_eq!((mark.values.as_slice(), &mark.from), (&[4.0, 6.0][..], &Some(vec![4.0, 6.0])));
    assert!(problem.is_none() && mark.name == "mark");
    let (again, _) = follower.look(vec![5.0, 5.0, 7.0]);
    assert_eq!((again.index, again.from), (mark.index, None));
    fs::write(&path, "sweep").unwrap();
    let (sweep, _) = follower.look(vec![5.0, 6.0, 8.0]);
    assert!(sweep.values == [6.0, 8.0] && sweep.index != mark.index);
    fs::remove_file(&path).unwrap();
    assert_eq!(follower.look(vec![5.0, 7.0, 9.0]).0.name, "sweep", "the last one counts");
}

#[test]
fn a_log_tells_the_phase_by_its_last_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, "== scan\nfile 1\n== index of 3\n").unwrap();
    let phases = format!(r"match:{}:^== (\w+)", path.display()).parse().unwrap();
    let mut follower = Follower::new(Some(&phases), &metrics(&["cpu"]));
    assert_eq!(follower.look(vec![1.0]).0.name, "index");
}

//= ms-manners/4.4-outside-phases
#[test]
fn what_moves_is_the_phase_where_nothing_tells_it() {
    let mut follower = Follower::new(Some(&"moving".parse().unwrap()), &metrics(&["cpu", "bytes"]));
    let mut look = |cpu: f64, bytes: f64| follower.look(vec![cpu, bytes]).0;
    assert_eq!((look(1.0, 1.0).index, look(1.0, 1.0).name), (0, String::new()), "nothing is known");
    let computes = look(2.0, 1.0);
    assert_eq!((computes.name.as_str(), computes.from), ("10", Some(vec![1.0, 1.0])));
    let reads = look(2.0, 5.0);
    assert!(reads.name == "01" && reads.index != computes.index);
    assert_eq!(look(2.0, 5.0).index, reads.index, "a pause is of the same phase");
    assert_eq!(look(f64::NAN, 6.0).name, "01");
    assert_eq!(look(3.0, 7.0).from, None, "not counted from what was no number");
}

#[test]
fn names_without_end_are_one_phase() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("phase");
    let phases = format!("file:{}", path.display()).parse().unwrap();
    let mut follower = Follower::new(Some(&phases), &metrics(&["cpu"]));
    let numbers: BTreeSet<u32> = (0..200)
        .map(|name| {
            fs::write(&path, name.to_string()).unwrap();
            follower.look(vec![1.0]).0.index
        })
        .collect();
    assert_eq!(numbers.len(), MOST + 1);
}
