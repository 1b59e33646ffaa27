//! `discnice refresh` that is killed, meets files that vanish, or finds a foreign work area leaves a complete directory.

mod graybox_support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, UNIX_EPOCH};

use discnice_graybox::fldc::refresh::marker::{Facts, Identity, Marker, Staged, WorkFile};
use discnice_requirements::skip;
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

fn identity(path: &Path) -> Identity {
    let meta = fs::metadata(path).unwrap();
    let born =
        meta.created().map_or(Duration::ZERO, |born| born.duration_since(UNIX_EPOCH).unwrap());
    let dev = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    Identity { dev, ino: meta.ino(), born: (born.as_secs().cast_signed(), born.subsec_nanos()) }
}

/// Makes what a refresh of `tree` leaves that was killed after exchanging `file`, where programs then changed both the
/// original and the copy; returns the work area.
fn both_changed(scratch: &Scratch) -> PathBuf {
    let (tree, area) = (scratch.path("tree"), scratch.path(".discnice-refresh-0123456789abcdef"));
    fs::create_dir(&tree).unwrap();
    fs::create_dir(&area).unwrap();
    fs::set_permissions(&area, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(tree.join("file"), vec![7; 200_000]).unwrap();
    let original = area.join("original");
    fs::write(&original, "changed, too").unwrap();
    let meta = fs::metadata(&original).unwrap();
    let marker = Marker { owner: meta.uid(), directory: identity(&tree), area: identity(&area) };
    fs::write(area.join("marker"), marker.to_string()).unwrap();
    let facts = Facts { size: 1, uid: 0, gid: 0, mode: 0, mtime: (0, 0) };
    let new = fs::metadata(tree.join("file")).unwrap().ino();
    let staged = WorkFile::Staged(Staged { old: meta.ino(), new, facts });
    fs::rename(original, area.join(staged.to_string())).unwrap();
    area
}

#[test]
fn looks_tell_of_what_an_interrupted_refresh_left() {
    let scratch = Scratch::new();
    let area = both_changed(&scratch);
    let look = |words: &[&str]| {
        let mut command = scratch.discnice(["refresh"]);
        run(command.args(words).arg("tree").env("XDG_STATE_HOME", scratch.path("state")))
    };
    let out = look(&["--dry-run"]);
    if out.stdout.contains("does not tell where files lie") {
        skip!("this file system does not tell where files lie");
    }
    let named = "discnice: .discnice-refresh-0123456789abcdef: left by an interrupted refresh; \
                 the next one clears it up\n";
    assert_eq!((out.status, out.stderr.as_str()), (0, named));
    let out = look(&["--dry-run", "--when-worth"]);
    assert_eq!((out.status, out.stderr.as_str()), (0, named));
    assert!(area.exists());
    let out = look(&["--when-worth"]);
    assert!(out.stdout.contains("not worth it yet"), "{out:?}");
    let kept = "discnice: tree.kept-by-refresh-0123456789abcdef: changed by another program";
    assert!(out.status == 1 && out.stderr.starts_with(kept), "{out:?}");
    assert!(!area.exists() && scratch.path("tree.kept-by-refresh-0123456789abcdef").exists());
    let out = look(&["--when-worth"]);
    assert_eq!((out.status, out.stderr.as_str()), (0, ""), "told once");
}
