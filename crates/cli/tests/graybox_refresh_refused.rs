//! `discnice refresh` of what cannot be refreshed: one line, 125, and nothing is changed.

mod graybox_support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use graybox_support::tree::manifest;
use graybox_support::{Scratch, is_root, run};

const USER: u32 = 54_321;

/// Inode, mode, size and times of everything below, by path.
fn facts(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let meta = fs::symlink_metadata(path).unwrap();
    let (ino, mode, size) = (meta.ino(), meta.mode(), meta.size());
    // Beside the directory a work area comes and goes.
    let parent = found.is_empty() || path.ends_with("disk");
    let mtime = if parent { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
    let size = if parent { 0 } else { size };
    let line = format!("{ino} {mode:o} {size} {mtime:?}");
    found.insert(path.to_owned(), line);
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            facts(&entry.unwrap().path(), found);
        }
    }
}

fn all(scratch: &Scratch) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    facts(&scratch.path(""), &mut found);
    found
}

/// Refresh of this path says just this and changes nothing.
fn refused(scratch: &Scratch, user: Option<u32>, path: &str, line: &str) {
    let before = all(scratch);
    let mut command = scratch.discnice(["refresh", path]);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let clock = Instant::now();
    let out = run(&mut command);
    assert!(clock.elapsed() < Duration::from_secs(20), "{path}: waited for something");
    assert_eq!((out.status, &*out.stdout), (125, ""), "{path}: {}", out.stderr);
    assert_eq!(out.stderr, format!("discnice: {path}: {line}\n"));
    assert_eq!(all(scratch), before, "{path}: something was changed");
}

#[test]
fn what_is_no_directory() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tree")).unwrap();
    scratch.write("tree/file", b"x");
    scratch.write("file", b"x");
    symlink("tree", scratch.path("link")).unwrap();
    symlink("nowhere", scratch.path("dangling")).unwrap();
    assert_eq!(run(Command::new("mkfifo").arg(scratch.path("fifo"))).status, 0);
    let real = fs::canonicalize(scratch.path("tree")).unwrap();
    let link = format!("a symbolic link; refresh {} itself", real.display());
    refused(&scratch, None, "link", &link);
    refused(&scratch, None, "dangling", "cannot open: No such file or directory");
    refused(&scratch, None, "fifo", "not a directory; name one");
    refused(&scratch, None, "file", "not a directory; name one");
    refused(&scratch, None, "file/below", "cannot open: Not a directory");
    refused(&scratch, None, "gone", "cannot open: No such file or directory");
}

#[test]
fn what_this_user_may_not_refresh() {
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    for name in ["foreign", "closed", "beside"] {
        fs::create_dir(scratch.path(name)).unwrap();
        scratch.write(&format!("{name}/file"), b"x");
        if name != "foreign" {
            for path in [scratch.path(name), scratch.path(name).join("file")] {
                chown(path, Some(USER), Some(USER)).unwrap();
            }
        }
    }
    fs::set_permissions(scratch.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    // The folder of all is root's, in which this user may make nothing.
    let denied = "cannot make a work area beside the directory: Permission denied";
    refused(&scratch, Some(USER), "beside", denied);
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o1777)).unwrap();
    refused(&scratch, Some(USER), "foreign", "belongs to another user");
    refused(&scratch, Some(USER), "closed", "cannot open: Permission denied");
    let out = run(scratch.discnice(["refresh", "beside"]).uid(USER).gid(USER));
    assert_eq!(out.status, 0, "{}", out.stderr);
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"x").unwrap();
    fs::hard_link(tree.join("file"), scratch.path("outside")).unwrap();
    let refuses = |words: &[&str], why: &str| {
        let out = run(&mut scratch.discnice(words));
        assert_eq!(out.status, 125, "{words:?} {}", out.stdout);
        assert!(out.stderr.contains(why), "{words:?}: {}", out.stderr);
    };
    refuses(&["refresh", "tree"], "file: has other hard links outside");
    let forced = run(&mut scratch.discnice(["refresh", "--force", "tree"]));
    assert_eq!(forced.status, 0, "{}", forced.stderr);
    assert_eq!(fs::metadata(scratch.path("outside")).unwrap().nlink(), 1);

    // One file with two names here stays one.
    let twin = [tree.join("one"), tree.join("other")];
    fs::write(&twin[0], b"y").unwrap();
    fs::hard_link(&twin[0], &twin[1]).unwrap();
    fs::hard_link(&twin[0], scratch.path("third")).unwrap();
    let forced = run(&mut scratch.discnice(["refresh", "--force", "tree"]));
    assert_eq!(forced.status, 0, "{}", forced.stderr);
    let said = format!("{}{}", forced.stdout, forced.stderr);
    assert!(said.contains("one: has several names"), "{said}");
    let [one, other] = twin.each_ref().map(|name| fs::metadata(name).unwrap());
    assert_eq!((one.ino(), one.nlink()), (other.ino(), 3));
    twin.iter().for_each(|name| fs::remove_file(name).unwrap());

    let open = fs::File::open(tree.join("file")).unwrap();
    refuses(&["refresh", "tree"], "file: in use by");
    refuses(&["refresh", "--force", "tree"], "file: in use by");
    drop(open);

    refuses(&["refresh", "/"], "the root directory cannot be refreshed");
    refuses(&["refresh", "/proc"], "a mount point");
    refuses(&["refresh", "gone"], "No such file or directory");
    assert_eq!(run(&mut scratch.discnice(["refresh", "tree/file"])).status, 125);
    if is_root() {
        let chattr = |flag| Command::new("chattr").arg(flag).arg(tree.join("file")).status();
        if chattr("+i").is_ok_and(|status| status.success()) {
            refuses(&["refresh", "tree"], "file: immutable");
            assert!(chattr("-i").unwrap().success());
        } else {
            skip!("no chattr(1), or the build folder's file system knows nothing immutable");
        }
    } else {
        skip!("only root makes a file immutable");
    }
}

/// A file system in memory, mounted at `disk`; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(scratch: &Scratch, options: &str) -> Option<Self> {
        let at = scratch.path("disk");
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        if run(mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&at)).status != 0 {
            return None;
        }
        Some(Self(at))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let out = run(Command::new("umount").arg(&self.0));
        if out.status != 0 {
            eprintln!("{}", out.stderr);
        }
    }
}

/// Mounts a file system of its own, of this type, at `disk`.
fn mount(scratch: &Scratch, kind: &str) -> Option<Disk> {
    let (at, image) = (scratch.path("disk"), scratch.path("image"));
    fs::create_dir(&at).unwrap();
    fs::File::create(&image).unwrap().set_len(320 << 20).unwrap();
    let made = Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image).output();
    let is_made = made.is_ok_and(|made| made.status.success());
    let mut mount = Command::new("mount");
    let is_there = is_made && run(mount.args(["-o", "loop"]).args([&image, &at])).status == 0;
    is_there.then(|| Disk(at))
}

#[test]
fn a_subvolume_inside_is_left_alone() {
    let scratch = Scratch::new();
    let Some(disk) = mount(&scratch, "btrfs") else {
        skip!("needs the right to mount, and mkfs.btrfs");
    };
    let tree = disk.0.join("tree");
    fs::create_dir(&tree).unwrap();
    let mut subvolume = Command::new("btrfs");
    let made = run(subvolume.args(["subvolume", "create"]).arg(tree.join("sub")));
    assert_eq!(made.status, 0, "{made:?}");
    for name in ["one", "sub/two"] {
        fs::write(tree.join(name), vec![1; 9000]).unwrap();
    }
    let inode = |name: &str| fs::metadata(tree.join(name)).unwrap().ino();
    let before = ["one", "sub/two"].map(inode);
    let out = run(&mut scratch.discnice(["refresh", "disk/tree"]));
    assert_eq!(out.status, 0, "{out:?}");
    assert!(out.stdout.contains("rewrote 1 file,"), "{out:?}");
    assert!(out.stdout.contains("sub: a subvolume; refresh the directories"), "{out:?}");
    assert!(inode("one") != before[0] && inode("sub/two") == before[1]);
}

#[test]
fn the_project_of_a_file_is_kept() {
    let scratch = Scratch::new();
    let Some(disk) = mount(&scratch, "xfs") else {
        skip!("needs the right to mount, and mkfs.xfs");
    };
    let tree = disk.0.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), vec![1; 9000]).unwrap();
    let projects = || {
        let out = run(Command::new("lsattr").arg("-p").arg(&tree));
        out.stdout.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(run(Command::new("chattr").args(["-p", "42"]).arg(tree.join("file"))).status, 0);
    let inode = || fs::metadata(tree.join("file")).unwrap().ino();
    let before = inode();
    let out = run(&mut scratch.discnice(["refresh", "disk/tree"]));
    assert!(out.status == 0 && inode() != before, "{out:?}");
    assert_eq!(projects().as_deref(), Some("42"));
}

#[test]
fn files_longer_than_this_process_may_write_stay() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tree")).unwrap();
    for (name, size) in [("small", 5000), ("large", 900_000)] {
        scratch.write(&format!("tree/{name}"), &vec![1; size]);
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 100; exec \"$0\" refresh tree"]);
    command.arg(graybox_support::discnice()).current_dir(scratch.path(""));
    let out = run(command.env("XDG_CACHE_HOME", scratch.path("")));
    assert_eq!(out.status, 0, "{out:?}");
    assert!(out.stdout.contains("rewrote 1 file,"), "{out:?}");
    assert!(out.stdout.contains("large: File too large"), "{out:?}");
    let beside = fs::read_dir(scratch.path("")).unwrap().count();
    assert_eq!(beside, 1, "something was left");
}

#[test]
fn a_full_disk_and_one_without_inodes() {
    let scratch = Scratch::new();
    let Some(disk) = Disk::mount(&scratch, "size=1m,nr_inodes=40") else {
        skip!("no file system of a few inodes (needs root)");
    };
    fs::create_dir(scratch.path("disk/tree")).unwrap();
    for number in 0..8 {
        scratch.write(&format!("disk/tree/{number}"), &[7; 100_000]);
    }
    refused(&scratch, None, "disk/tree", "needs 825 KiB free, has 220 KiB");
    for number in 0..25 {
        scratch.write(&format!("disk/tree/{number}"), b"x");
    }
    refused(&scratch, None, "disk/tree", "needs 25 free inodes, has 11");
    // The disk has no room for the work area itself.
    for number in 25..38 {
        scratch.write(&format!("disk/tree/{number}"), b"");
    }
    for free in 0..4 {
        let before = all(&scratch);
        let out = run(&mut scratch.discnice(["refresh", "disk/tree"]));
        assert_eq!((out.status, out.stderr.lines().count()), (125, 1), "{free} {}", out.stderr);
        assert!(out.stderr.contains("No space left on device"), "{free} {}", out.stderr);
        assert_eq!(all(&scratch), before, "{free}");
        fs::remove_file(scratch.path(format!("disk/tree/{free}"))).unwrap();
    }
    drop(disk);
}

#[test]
fn a_full_and_a_read_only_disk() {
    let scratch = Scratch::new();
    let Some(disk) = Disk::mount(&scratch, "size=1m") else {
        skip!("needs the right to mount");
    };
    let tree = scratch.path("disk/tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), vec![1; 700_000]).unwrap();
    let before = manifest(&tree);
    let out = run(&mut scratch.discnice(["refresh", "disk/tree"]));
    assert_eq!(out.status, 125);
    assert!(out.stderr.starts_with("discnice: disk/tree: needs "), "{}", out.stderr);
    fs::write(tree.join("file"), b"small now").unwrap();
    let remount = ["-o", "remount,ro"];
    assert_eq!(run(Command::new("mount").args(remount).arg(scratch.path("disk"))).status, 0);
    let out = run(&mut scratch.discnice(["refresh", "disk/tree"]));
    assert_eq!(out.status, 125);
    assert!(out.stderr.contains("Read-only file system"), "{}", out.stderr);
    assert_eq!(before.len(), manifest(&tree).len());
    let root = run(&mut scratch.discnice(["refresh", "disk"]));
    assert!(root.stderr.contains("a mount point or subvolume"), "{}", root.stderr);
    drop(disk);
}
