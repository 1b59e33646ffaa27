//! `discnice refresh`: everything is kept, what cannot be is refused, and a kill at any moment
//! leaves a complete directory.

mod graybox_support;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use graybox_support::{Scratch, discnice, is_root, run};

/// All that must be kept of a tree, by path.
type Manifest = BTreeMap<Vec<u8>, String>;

fn manifest(root: &Path) -> Manifest {
    let mut found = Manifest::new();
    describe(root, b"", &mut found);
    found
}

fn describe(path: &Path, name: &[u8], found: &mut Manifest) {
    let meta = fs::symlink_metadata(path).unwrap();
    let kind = meta.file_type();
    let content = if kind.is_file() {
        format!("{:?} {}", fs::read(path).map(|bytes| checksum(&bytes)).ok(), meta.size())
    } else if kind.is_symlink() {
        format!("-> {:?}", fs::read_link(path).unwrap())
    } else {
        format!("{} {}", kind.is_fifo(), kind.is_dir())
    };
    let links = if kind.is_dir() { 0 } else { meta.nlink() };
    let line = format!(
        "{:o} {} {} {} {}.{:09} {links} {content}",
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.rdev(),
        meta.mtime(),
        meta.mtime_nsec(),
    );
    found.insert(name.to_vec(), line);
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let below = [name, b"/", entry.file_name().as_bytes()].concat();
            describe(&entry.path(), &below, found);
        }
    }
}

/// Without the times of directories.
fn without_times(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    for line in manifest.values_mut().filter(|line| line.ends_with("0 false true")) {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.remove(4);
        *line = words.join(" ");
    }
    manifest
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A tree with one of everything that needs no privilege.
fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("sub/deeper/empty")).unwrap();
    for number in 0..40u32 {
        let size = (number * 7919 % 50) as usize * 1000;
        let contents: Vec<u8> = (0..size).map(|at| (at as u32 * number) as u8).collect();
        fs::write(root.join(format!("file{number}")), contents).unwrap();
    }
    fs::write(root.join(OsString::from_vec(b"no \xff utf-8\n".to_vec())), b"odd").unwrap();
    fs::hard_link(root.join("file1"), root.join("sub/same as file1")).unwrap();
    symlink("../nowhere", root.join("sub/link")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success());
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"island", 5_000_000).unwrap();
    sparse.set_len(20_000_000).unwrap();
    let old = Command::new("touch")
        .args(["-d", "2001-02-03 04:05:06.789"])
        .args([root.join("file2"), root.join("sub/deeper")])
        .status();
    assert!(old.unwrap().success());
    let mode = |name: &str, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("file3", 0o4711);
    mode("file4", 0o400);
    mode("sub/deeper", 0o555);
}

fn inodes_of_files(root: &Path) -> BTreeMap<OsString, u64> {
    let entries = fs::read_dir(root).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name(), entry.metadata().unwrap().ino())).collect()
}

fn make_removable(root: &Path) {
    fs::set_permissions(root.join("sub/deeper"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn only_the_tree_is_left(scratch: &Scratch) -> bool {
    let names = fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    names.eq(["tree"])
}

//= gray-box/2-known-state
//= gray-box/4.2.2-times
#[test]
fn everything_is_kept() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_tree(&tree);
    let xattr = rustix::fs::lsetxattr(
        tree.join("file5"),
        "user.discnice.test",
        b"\0kept\xff",
        rustix::fs::XattrFlags::empty(),
    );
    let (before, inodes) = (manifest(&tree), inodes_of_files(&tree));
    let blocks = fs::metadata(tree.join("sparse")).unwrap().blocks();
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(manifest(&tree), before);
    for (name, inode) in inodes_of_files(&tree) {
        // Two names cannot be exchanged in one step.
        let linked = name == "file1";
        assert_eq!(inodes[&name] == inode, linked, "{name:?} was not rewritten, or was");
    }
    assert!(fs::metadata(tree.join("sparse")).unwrap().blocks() <= blocks, "holes were filled");
    let (one, other) = (tree.join("file1"), tree.join("sub/same as file1"));
    assert_eq!(fs::metadata(one).unwrap().ino(), fs::metadata(other).unwrap().ino());
    if xattr.is_ok() {
        let mut value = [0; 16];
        let size =
            rustix::fs::lgetxattr(tree.join("file5"), "user.discnice.test", &mut value).unwrap();
        assert_eq!(&value[..size], b"\0kept\xff");
    }
    assert!(only_the_tree_is_left(&scratch));
    make_removable(&tree);
}

#[test]
fn a_dry_run_changes_nothing() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_tree(&tree);
    let (before, inode) = (manifest(&tree), fs::metadata(&tree).unwrap().ino());
    let out = run(&mut scratch.discnice(["refresh", "--dry-run", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stdout.contains("would rewrite"), "{}", out.stdout);
    assert_eq!((manifest(&tree), fs::metadata(&tree).unwrap().ino()), (before, inode));
    make_removable(&tree);
}

//= gray-box/4.2.1-refresh
//= gray-box/4.2.2-user-order
#[test]
fn small_files_are_placed_first_or_as_told() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    fs::create_dir(&tree).unwrap();
    for (name, size) in [("large", 900_000), ("small", 5000), ("middle", 90_000)] {
        fs::write(tree.join(name), vec![1; size]).unwrap();
    }
    fs::write(scratch.path("list"), "large\nsmall\n").unwrap();
    assert_placed(&scratch, &["refresh", "tree"], [b"small", b"middle", b"large"]);
    let told = ["refresh", "--order", "list", "tree"];
    assert_placed(&scratch, &told, [b"large", b"small", b"middle"]);
    // Names in the list are bytes, as names are.
    fs::write(tree.join(OsStr::from_bytes(b"odd \xff")), vec![1; 900]).unwrap();
    fs::write(scratch.path("list"), b"middle\n./odd \xff\nlarge\n").unwrap();
    assert_placed(&scratch, &told, [b"middle", b"odd \xff", b"large"]);
    let out = run(&mut scratch.discnice(["refresh", "--order", "missing", "tree"]));
    assert_eq!(out.status, 125);
    assert_eq!(
        out.stderr,
        "discnice: cannot read the list missing: No such file or directory; give a file with one name a line\n"
    );
}

/// The command gives the files of `tree` inode numbers in this order. Other processes that make
/// files at the same time get numbers in between, and leave holes when they delete them: it may try
/// again.
fn assert_placed(scratch: &Scratch, words: &[&str], names: [&[u8]; 3]) {
    let mut seen = Vec::new();
    for _ in 0..5 {
        let out = run(&mut scratch.discnice(words));
        assert_eq!(out.status, 0, "{}", out.stderr);
        let path = |name| scratch.path("tree").join(OsStr::from_bytes(name));
        let inodes = names.map(|name| fs::metadata(path(name)).unwrap().ino());
        if inodes.is_sorted() {
            return;
        }
        seen.push(inodes);
    }
    panic!("{names:?}: {seen:?}");
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"x").unwrap();
    fs::hard_link(tree.join("file"), scratch.path("outside")).unwrap();
    let refused = |words: &[&str], why: &str| {
        let out = run(&mut scratch.discnice(words));
        assert_eq!(out.status, 125, "{words:?} {}", out.stdout);
        assert!(out.stderr.contains(why), "{words:?}: {}", out.stderr);
    };
    refused(&["refresh", "tree"], "file: has other hard links outside");
    let forced = run(&mut scratch.discnice(["refresh", "--force", "tree"]));
    assert_eq!(forced.status, 0, "{}", forced.stderr);
    assert_eq!(fs::metadata(scratch.path("outside")).unwrap().nlink(), 1);

    let open = fs::File::open(tree.join("file")).unwrap();
    refused(&["refresh", "tree"], "file: in use by");
    refused(&["refresh", "--force", "tree"], "file: in use by");
    drop(open);

    refused(&["refresh", "/"], "the root directory cannot be refreshed");
    refused(&["refresh", "/proc"], "a mount point");
    refused(&["refresh", "gone"], "No such file or directory");
    assert_eq!(run(&mut scratch.discnice(["refresh", "tree/file"])).status, 125);
    if is_root() {
        let chattr = |flag| Command::new("chattr").arg(flag).arg(tree.join("file")).status();
        if chattr("+i").is_ok_and(|status| status.success()) {
            refused(&["refresh", "tree"], "file: immutable");
            assert!(chattr("-i").unwrap().success());
        } else {
            skip!("no chattr(1), or the build folder's file system knows nothing immutable");
        }
    } else {
        skip!("only root makes a file immutable");
    }
}

#[test]
fn a_directory_named_from_inside_itself() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_tree(&tree);
    let before = manifest(&tree);
    for name in [".", "sub/..", "../tree", "sub/deeper/../../../tree/."] {
        let out = run(scratch.discnice(["refresh", name]).current_dir(&tree));
        assert_eq!(out.status, 0, "{name}: {}", out.stderr);
        assert_eq!(manifest(&tree), before, "{name}");
        assert!(only_the_tree_is_left(&scratch), "{name}");
    }
    // A shell that works in the directory stays in it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" refresh . && echo new >made"]).arg(discnice()).current_dir(&tree);
    let out = run(shell.env("XDG_CACHE_HOME", scratch.path("")));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(fs::read(tree.join("made")).unwrap(), b"new\n");
    make_removable(&tree);
}

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

/// A tmpfs of 1 MiB, unmounted at the end; `None`, said visibly, without the right to mount.
struct SmallDisk<'a>(&'a Scratch);

impl<'a> SmallDisk<'a> {
    fn mount(scratch: &'a Scratch) -> Option<Self> {
        fs::create_dir(scratch.path("disk")).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(scratch.path("disk"));
        if run(&mut mount).status != 0 {
            skip!(None; "needs the right to mount");
        }
        Some(Self(scratch))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let out = run(Command::new("umount").arg(self.0.path("disk")));
        if out.status != 0 {
            eprintln!("{}", out.stderr);
        }
    }
}

#[test]
fn a_full_and_a_read_only_disk() {
    let scratch = Scratch::new();
    if let Some(disk) = SmallDisk::mount(&scratch) {
        refresh_on_full_and_read_only(&scratch, disk);
    }
}

fn refresh_on_full_and_read_only(scratch: &Scratch, disk: SmallDisk<'_>) {
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
