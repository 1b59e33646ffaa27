//! `discnice refresh` that is killed, meets files that vanish, or finds a foreign work area leaves a complete directory.

mod graybox_support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use graybox_support::tree::{
    make_removable, make_tree, manifest, only_the_tree_is_left, without_times,
};
use graybox_support::{Scratch, run};

#[test]
fn what_vanishes_meanwhile_leaves_the_directory_as_it_is() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    fs::create_dir(&tree).unwrap();
    let mut met = 0;
    for round in 0..20 {
        for number in 0..200 {
            fs::write(tree.join(format!("file{number}")), vec![7; 5000]).unwrap();
        }
        let mut child = scratch.discnice(["refresh", "tree"]);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2 * round));
        let gone = tree.join("file100");
        fs::remove_file(&gone).unwrap();
        let out = child.wait_with_output().unwrap();
        // In time to be noticed, or so early or late that it made no difference.
        assert!(out.status.success() && out.stderr.is_empty(), "round {round}: {out:?}");
        let said = String::from_utf8_lossy(&out.stdout).contains("file100: vanished");
        met += usize::from(said);
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 199, "round {round}");
        for kept in fs::read_dir(scratch.path("")).unwrap() {
            let kept = kept.unwrap().file_name().into_string().unwrap();
            assert!(kept == "tree" || kept == "discnice", "round {round} left {kept}");
        }
    }
    assert!(met > 0, "no refresh met a file that vanished");
}

#[test]
fn a_foreign_work_area_is_left_alone() {
    /// Where the first format's refresh of a directory named `tree` worked.
    const WORK_AREA: &str = ".discnice-refresh-6baa6c9f461fe834";
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tree")).unwrap();
    fs::create_dir(scratch.path(WORK_AREA)).unwrap();
    let mine = scratch.path(WORK_AREA).join("mine");
    fs::write(&mine, b"precious").unwrap();
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stderr.contains("not made by discnice"), "{}", out.stderr);
    assert_eq!(fs::read(&mine).unwrap(), b"precious");
    fs::remove_file(&mine).unwrap();
    // An empty one is what a crash leaves between two steps.
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(only_the_tree_is_left(&scratch));
}

/// Whether a refresh of `tree` could be killed before it was done.
fn kill_after(scratch: &Scratch, delay: Duration) -> bool {
    let mut child = scratch
        .discnice(["refresh", "tree"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(delay);
    let killed = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    killed
}

//= gray-box/4.2.2-atomic
#[test]
fn a_kill_at_any_moment_leaves_the_directory_complete() {
    /// More by `DISCNICE_KILLS=200`.
    const KILLS: u32 = 40;
    let kills = std::env::var("DISCNICE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_tree(&tree);
    let before = manifest(&tree);
    let clock = Instant::now();
    assert_eq!(run(&mut scratch.discnice(["refresh", "tree"])).status, 0);
    let whole = clock.elapsed();
    let mut killed = 0;
    for round in 0..kills {
        killed += u32::from(kill_after(&scratch, whole * round / kills));
        // A directory's own time is that of the exchange until the next refresh sets it back.
        assert_eq!(without_times(&manifest(&tree)), without_times(&before), "after kill {round}");
    }
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(manifest(&tree), before);
    assert!(only_the_tree_is_left(&scratch), "something was left");
    assert!(killed > kills / 4, "only {killed} of {kills} were killed in time");
    make_removable(&tree);
}
