//! `discnice calibrate` writes a profile that can be read.

mod graybox_support;

use discnice_profile::{FigureName, Profile};
use graybox_support::{Scratch, run};

#[test]
fn a_profile_is_written_and_read() {
    let scratch = Scratch::new();
    let words = ["calibrate", "--force", "--dir", ".", "--output", "profile.toml"];
    let out = run(&mut scratch.discnice(words));
    assert_eq!(out.status, 0, "{}", out.stderr);
    let profile = Profile::load_from(&scratch.path("profile.toml")).unwrap();
    let host = |name| profile.host(name).unwrap();
    assert!((1.0..10_000.0).contains(&host(FigureName::TimerCost)));
    assert!(host(FigureName::MemoryAccess) < host(FigureName::PageZeroing));
    assert_eq!(profile.trusts.len(), 1);
    assert!(
        profile.figures.iter().all(|figure| figure.value > 0.0 || figure.name == FigureName::Seek)
    );

    let bad =
        run(&mut scratch.discnice(["calibrate", "--force", "--dir", "gone", "--output", "p"]));
    assert_eq!(bad.status, 1);
    assert_eq!(bad.stderr, "discnice: gone: No such file or directory\n");
}
