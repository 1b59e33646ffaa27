//! `discnice refresh` beside another user with write access to the parent of the directory, as its
//! owner, or with write access inside: nothing is removed, read or changed that this user's refresh
//! did not make.

mod graybox_support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_requirements::skip;
use graybox_support::{Out, Scratch, run};

const VICTIM: u32 = 54_321;
const ATTACKER: u32 = 54_322;
/// Work area of the first format for a directory named `tree`.
const OLD_AREA: &str = ".discnice-refresh-6baa6c9f461fe834";
/// A name as the work areas of today have.
const NEW_AREA: &str = ".discnice-refresh-0123456789abcdef";

/// Runs a shell script as this user, in the folder; it must succeed.
fn sh(user: u32, folder: &Path, script: &str) {
    let out = try_sh(user, folder, script);
    assert_eq!(out.status, 0, "{script}: {}", out.stderr);
}

fn try_sh(user: u32, folder: &Path, script: &str) -> Out {
    run(Command::new("sh").args(["-ec", script]).current_dir(folder).uid(user).gid(user))
}

/// A parent with this mode and owner, in which the victim has `tree` and `precious`.
fn parent(scratch: &Scratch, owner: u32, mode: u32, victim: u32) -> PathBuf {
    let parent = scratch.path(format!("parent-{owner}-{mode:o}"));
    fs::create_dir(&parent).unwrap();
    for name in ["tree", "precious"] {
        fs::create_dir(parent.join(name)).unwrap();
        fs::write(parent.join(name).join("file"), b"gold").unwrap();
        chown(parent.join(name), Some(victim), Some(victim)).unwrap();
        chown(parent.join(name).join("file"), Some(victim), Some(victim)).unwrap();
    }
    chown(&parent, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(mode)).unwrap();
    parent
}

fn refresh_as(scratch: &Scratch, user: u32, parent: &Path) -> Out {
    let mut command = scratch.discnice(["refresh", "tree"]);
    run(command.current_dir(parent).uid(user).gid(user))
}

/// The parents that another user has some power over, and the user that refresh runs as there.
const CASES: [(u32, u32, u32); 4] = [
    (0, 0o777, VICTIM),
    (0, 0o1777, VICTIM),
    // Root refreshes what is in another user's folder.
    (ATTACKER, 0o755, 0),
    (ATTACKER, 0o1777, 0),
];

fn was_rewritten(parent: &Path, before: u64) -> bool {
    fs::metadata(parent.join("tree/file")).unwrap().ino() != before
}

/// For each case: the attacker does this, then refresh must do its work and harm nothing. `moved`
/// names where `precious` may be afterwards.
fn each_case(attack: &str, moved: &str) {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    for (owner, mode, victim) in CASES {
        let parent = parent(&scratch, owner, mode, victim);
        let inode = fs::metadata(parent.join("tree/file")).unwrap().ino();
        // In a sticky folder of root's some of it is not allowed.
        let attacked = try_sh(ATTACKER, &parent, attack);
        let out = refresh_as(&scratch, victim, &parent);
        let what = format!("{owner} {mode:o} {victim}: {attacked:?} {out:?}");
        assert_eq!(out.status, 0, "{what}");
        assert!(was_rewritten(&parent, inode), "{what}");
        let places = ["precious", moved].map(|name| parent.join(name).join("file"));
        let kept = places.iter().filter_map(|path| fs::read(path).ok()).collect::<Vec<_>>();
        assert_eq!(kept, [b"gold"], "precious is gone: {what}");
        assert_eq!(fs::read(parent.join("tree/file")).unwrap(), b"gold", "{what}");
        fs::remove_dir_all(&parent).unwrap();
    }
}

#[test]
fn a_directory_renamed_to_the_old_work_area_s_is_not_removed() {
    let moved = format!("{OLD_AREA}.new");
    let plant = format!(
        "mkdir {OLD_AREA}; : >{OLD_AREA}/made-by-discnice-refresh; chmod 777 {OLD_AREA}; mv precious {moved}"
    );
    each_case(&plant, &moved);
}

#[test]
fn a_directory_renamed_to_a_work_area_is_not_removed() {
    each_case(&format!("mv precious {NEW_AREA}"), NEW_AREA);
}

#[test]
fn planted_names_are_no_obstacle() {
    for area in [OLD_AREA, NEW_AREA] {
        for plant in [
            format!("mkdir -m 700 {area}; echo discnice-refresh 2 >{area}/marker"),
            format!("mkdir -m 755 {area}; mkfifo {area}/marker {area}/made-by-discnice-refresh"),
            format!("mkfifo {area}"),
            format!("ln -s precious {area}"),
            format!("ln -s precious {area}.new; mkdir {area}; : >{area}/made-by-discnice-refresh"),
            format!(": >{area}"),
        ] {
            each_case(&plant, "moved");
        }
    }
}

/// A work area of the calling user, as a refresh killed in its copying leaves it.
fn interrupted(scratch: &Scratch, user: u32, parent: &Path) -> PathBuf {
    for number in 0..400 {
        fs::write(parent.join(format!("tree/more{number}")), vec![3; 20_000]).unwrap();
        chown(parent.join(format!("tree/more{number}")), Some(user), Some(user)).unwrap();
    }
    for delay in 1..200 {
        let mut command = scratch.discnice(["refresh", "tree"]);
        let mut child = command.current_dir(parent).uid(user).gid(user).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5 * delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let names = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
        let area = |path: &PathBuf| {
            path.file_name().unwrap().as_encoded_bytes().starts_with(b".discnice-refresh-")
        };
        let filled = |path: &PathBuf| fs::read_dir(path).unwrap().count() > 3;
        if let Some(found) = names.filter(area).find(filled) {
            return found;
        }
    }
    panic!("no refresh was killed in its copying");
}

#[test]
fn a_real_marker_does_not_serve_another_directory() {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    let parent = parent(&scratch, 0, 0o777, VICTIM);
    let area = interrupted(&scratch, VICTIM, &parent);
    // The attacker lets the names change places: another directory is called `tree` now.
    sh(ATTACKER, &parent, "mv tree real; mv precious tree");
    let out = refresh_as(&scratch, VICTIM, &parent);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(area.exists(), "the work area of another directory was cleared up");
    assert_eq!(fs::read(parent.join("tree/file")).unwrap(), b"gold");
    // The marker copied into another directory of the victim's does not fit that either.
    sh(
        VICTIM,
        &parent,
        &format!("mkdir -m 700 {NEW_AREA}; cp {}/marker {NEW_AREA}", area.display()),
    );
    fs::write(parent.join(NEW_AREA).join("t-1"), b"precious").unwrap();
    sh(ATTACKER, &parent, "mv tree precious; mv real tree");
    let out = refresh_as(&scratch, VICTIM, &parent);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stdout.contains("cleared up after an interrupted refresh"), "{}", out.stdout);
    assert!(!area.exists(), "the work area was not cleared up");
    assert_eq!(fs::read(parent.join(NEW_AREA).join("t-1")).unwrap(), b"precious");
}

#[test]
fn a_work_area_renamed_by_others_is_still_found() {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    let parent = parent(&scratch, ATTACKER, 0o755, 0);
    let area = interrupted(&scratch, 0, &parent);
    sh(ATTACKER, &parent, &format!("mv {} {NEW_AREA}", area.display()));
    let out = refresh_as(&scratch, 0, &parent);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stdout.contains("cleared up after an interrupted refresh"), "{}", out.stdout);
    assert!(!parent.join(NEW_AREA).exists());
}

#[test]
fn a_work_area_of_another_owner_is_left() {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    let parent = parent(&scratch, 0, 0o1777, VICTIM);
    let area = interrupted(&scratch, VICTIM, &parent);
    chown(area.join("marker"), Some(ATTACKER), None).unwrap();
    let out = refresh_as(&scratch, VICTIM, &parent);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(area.exists(), "a marker of another user was believed");
    chown(area.join("marker"), Some(VICTIM), None).unwrap();
    fs::set_permissions(&area, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refresh_as(&scratch, VICTIM, &parent).status, 0);
    assert!(area.exists(), "a work area open to others was believed");
    fs::set_permissions(&area, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(refresh_as(&scratch, VICTIM, &parent).status, 0);
    assert!(!area.exists(), "it was not cleared up in the end");
}

#[test]
fn a_work_area_inside_is_no_part_of_the_directory() {
    let scratch = Scratch::new();
    let outer = scratch.path("outer");
    fs::create_dir_all(outer.join("tree")).unwrap();
    let area = interrupted(&scratch, rustix::process::geteuid().as_raw(), &outer);
    let inodes = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        files.map(|meta| meta.ino()).collect::<std::collections::BTreeSet<_>>()
    };
    let (before, tree) = (inodes(&area), inodes(&outer.join("tree")));
    let out = run(&mut scratch.discnice(["refresh", "outer"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(inodes(&area), before);
    assert_eq!(inodes(&outer.join("tree")).intersection(&tree).count(), 0);
    let out = run(&mut scratch.discnice(["refresh", "outer/tree"]));
    assert_eq!((out.status, &*out.stderr), (0, ""));
    assert!(out.stdout.contains("cleared up after an interrupted refresh"), "{}", out.stdout);
    assert!(!area.exists());
}

/// Root refreshes a directory while its owner renames everything in it and beside it all the time.
#[test]
fn renames_in_the_middle_move_nothing_out_of_place() {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    let parent = parent(&scratch, ATTACKER, 0o755, 0);
    let outside = scratch.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), b"root's").unwrap();
    fs::set_permissions(outside.join("file"), fs::Permissions::from_mode(0o4700)).unwrap();
    let inode = fs::metadata(outside.join("file")).unwrap().ino();
    chown(parent.join("tree"), Some(ATTACKER), None).unwrap();
    sh(ATTACKER, &parent, "mkdir tree/sub; for n in 1 2 3 4 5; do echo evil >tree/sub/$n; done");
    symlink(&outside, parent.join("link")).unwrap();
    let renames = "while :; do mv tree/sub tree/other; mv link tree/sub; mv tree/sub link; mv tree/other tree/sub
        mv tree/sub/1 tree/sub/2; ln ../outside/file tree/sub/1 2>&- || echo evil >tree/sub/1
        mv tree/sub/1 tree/sub/file; ln -s ../../../outside/file tree/sub/1; rm tree/sub/1; echo evil >tree/sub/1
        mv tree real; mkdir tree; rmdir tree; mv real tree
        for area in .discnice-refresh-*; do mv $area moved && mv moved $area; done; done";
    let mut command = Command::new("sh");
    command.args(["-c", renames]).current_dir(&parent).uid(ATTACKER).gid(ATTACKER);
    let mut attacker = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    for _ in 0..25 {
        let out = refresh_as(&scratch, 0, &parent);
        assert!([0, 1, 125].contains(&out.status), "{out:?}");
    }
    attacker.kill().unwrap();
    attacker.wait().unwrap();
    let kept = fs::metadata(outside.join("file")).unwrap();
    assert_eq!((kept.ino(), kept.mode() & 0o7777, kept.uid()), (inode, 0o4700, 0));
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"root's");
    assert_eq!(fs::read(parent.join("precious/file")).unwrap(), b"gold");
    // Nothing of root's rights went to the attacker's contents, nor root's contents to that user.
    let find = |words: &[&str]| run(Command::new("find").args(words).current_dir(&parent)).stdout;
    assert_eq!(find(&[".", "-type", "f", "-perm", "/6000", "-links", "1"]), "");
    assert_eq!(
        find(&[
            ".",
            "-user",
            "0",
            "-not",
            "-path",
            "./precious*",
            "-links",
            "1",
            "-type",
            "f",
            "-not",
            "-path",
            "*discnice*"
        ])
        .replace("./tree/file\n", "")
        .replace("./real/file\n", ""),
        ""
    );
}
