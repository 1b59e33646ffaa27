use std::process::Command;

use super::*;

fn profile() -> Profile {
    let figure = |name, value, device: Option<&str>| Figure {
        name,
        value,
        unit: FigureUnit::Nanoseconds,
        spread: 1.5,
        samples: 9,
        device: device.map(str::to_owned),
        file_system: None,
        date: "2026-01-01T00:00:00Z".into(),
    };
    Profile {
        version: VERSION,
        kernel: "6.18".into(),
        while_busy: false,
        figures: vec![
            figure(FigureName::TimerCost, 20.0, None),
            figure(FigureName::Seek, 8e6, Some("8:1")),
        ],
        trusts: Vec::new(),
    }
}

//= gray-box/5-repository
#[test]
fn comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/on/demand/profile.toml");
    profile().save_to(&path).unwrap();
    let back = Profile::load_from(&path).unwrap();
    assert_eq!(back, profile());
    assert_eq!(back.host(FigureName::TimerCost), Some(20.0));
    assert_eq!(back.device(FigureName::Seek, rustix::fs::makedev(8, 1)), Some(8e6));
    assert_eq!(back.device(FigureName::Seek, rustix::fs::makedev(8, 2)), None);
    assert_eq!(back.host(FigureName::Seek), None);
}

//= gray-box/4.1.2-access-unit
//= gray-box/5-missing
#[test]
fn the_access_unit_makes_up_for_seeks() {
    let dev = rustix::fs::makedev(8, 1);
    let mut profile = profile();
    assert_eq!(profile.access_unit(dev), None, "no sequential rate is known");
    let rate =
        Figure { name: FigureName::SequentialRead, value: 50e6, ..profile.figures[1].clone() };
    profile.figures.push(rate);
    // 8 ms, at 50 MB/s 400 kB, are 5 % of the time that 8 MB take.
    assert_eq!(profile.access_unit(dev), Some(8_000_000));
    assert_eq!(profile.access_unit(rustix::fs::makedev(8, 2)), None);
    profile.figures[1].value = 1e3;
    assert_eq!(profile.access_unit(dev), Some(1 << 20), "a disk without seeks");
}

#[test]
fn an_older_profile_says_nothing_of_tiny_files() {
    let trust = Trust {
        device: "8:1".into(),
        file_system: "btrfs".into(),
        reads_frac: Some(1.0),
        writes_frac: 1.0,
        rewrites_frac: 0.0,
        file_overhead_bytes: Some(1300),
        file_uncharged_bytes: Some(975),
        tiny_file_overhead_bytes: Some(-700),
        transaction_bytes: Some(170_000),
        cachestat: true,
        mincore: true,
        date: "2026-01-01T00:00:00Z".into(),
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.toml");
    let mut now = Profile { trusts: vec![trust], ..profile() };
    now.save_to(&path).unwrap();
    assert_eq!(Profile::load_from(&path).unwrap(), now);
    let text = fs::read_to_string(&path).unwrap();
    let older: String =
        text.split_inclusive('\n').filter(|line| !line.starts_with("tiny_")).collect();
    fs::write(&path, &older).unwrap();
    now.trusts[0].tiny_file_overhead_bytes = None;
    assert!(older.len() < text.len());
    assert_eq!(Profile::load_from(&path).unwrap(), now);
}

#[test]
fn other_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.toml");
    assert!(matches!(Profile::load_from(&path), Err(LoadError::Missing)));
    fs::write(&path, "version = 999\n").unwrap();
    assert!(matches!(Profile::load_from(&path), Err(LoadError::Version(999))));
    fs::write(&path, "\0\0").unwrap();
    assert!(matches!(Profile::load_from(&path), Err(LoadError::Broken(_))));
    fs::write(&path, "version = 1\n").unwrap();
    assert!(matches!(Profile::load_from(&path), Err(LoadError::Broken(_))));
}

#[test]
fn only_regular_files_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let mut made = vec![place("fifo")];
    assert!(Command::new("mkfifo").arg(&made[0]).status().unwrap().success());
    let node = Command::new("mknod").arg(place("null")).args(["c", "1", "3"]).output();
    if node.is_ok_and(|made| made.status.success()) {
        made.push(place("null"));
    }
    std::os::unix::fs::symlink("fifo", place("to fifo")).unwrap();
    made.push(place("to fifo"));
    for path in made {
        let error = profile().save_to(&path).unwrap_err();
        assert_eq!(error.to_string(), "it is no regular file", "{}", path.display());
        assert!(!path.is_file(), "{}", path.display());
    }
    std::fs::write(place("old"), "").unwrap();
    std::os::unix::fs::symlink("old", place("link")).unwrap();
    profile().save_to(&place("link")).unwrap();
    assert!(place("link").is_symlink());
    assert_eq!(Profile::load_from(&place("old")).unwrap(), profile());
}
