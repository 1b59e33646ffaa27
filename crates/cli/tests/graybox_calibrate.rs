//! `discnice calibrate` writes a profile that can be read.

mod graybox_support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use discnice_graybox::profile::{FigureName, Profile};
use discnice_requirements::skip;
use graybox_support::{Scratch, run};

//= gray-box/5-repository
#[test]
fn a_profile_is_written_and_read() {
    let scratch = Scratch::new();
    let words = ["calibrate", "--force", "--dir", ".", "--output", "profile.toml"];
    let out = run(&mut scratch.discnice(words));
    assert_eq!((out.status, out.stderr.as_str()), (0, ""));
    let profile = Profile::load_from(&scratch.path("profile.toml")).unwrap();
    let host = |name| profile.host(name).unwrap();
    assert!((1.0..10_000.0).contains(&host(FigureName::TimerCost)));
    assert!(host(FigureName::MemoryAccess) < host(FigureName::PageZeroing));
    assert_eq!(profile.trusts.len(), 1);
    assert!(
        profile.figures.iter().all(|figure| figure.value > 0.0 || figure.name == FigureName::Seek)
    );
}

#[test]
fn what_is_interrupted_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let temporary = |folder_only: bool| {
        fs::read_dir(scratch.path("")).unwrap().flatten().any(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(b".tmp") && (is_folder || !folder_only)
        })
    };
    let words = ["calibrate", "--force", "--dir", ".", "--output", "profile.toml"];
    let mut calibrate = scratch.discnice(words);
    let mut child = calibrate.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !temporary(true) {
        if child.try_wait().unwrap().is_some() {
            skip!("no disk with a counter is known below the build folder");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let out = child.wait_with_output().unwrap();
    let line = "discnice: interrupted; no profile was written\n";
    assert_eq!((out.status.code(), &*String::from_utf8_lossy(&out.stderr)), (Some(125), line));
    assert!(!temporary(false) && !scratch.path("profile.toml").exists());
}

#[test]
fn what_cannot_be_written_is_not_measured() {
    let scratch = Scratch::new();
    scratch.write("file", b"");
    let words = ["calibrate", "--dir", ".", "--dir", "gone", "--output", "profile.toml"];
    let out = run(&mut scratch.discnice(words));
    let line = "discnice: cannot calibrate gone: No such file or directory; \
                give a directory on the disk to measure\n";
    assert_eq!((out.status, out.stderr.as_str()), (125, line));
    for (output, why) in [("file/p", "File exists"), (".", "is a directory")] {
        let clock = Instant::now();
        let out = run(&mut scratch.discnice(["calibrate", "--force", "--output", output]));
        let line = format!(
            "discnice: cannot write {output}: {why}; give another place by --output FILE\n"
        );
        assert_eq!((out.status, out.stderr), (125, line));
        assert!(clock.elapsed() < Duration::from_secs(10), "measured in vain");
    }
}
