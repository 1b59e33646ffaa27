//! `discnice refresh` keeps everything of a directory, from wherever it is named, and places its files in order.

mod graybox_support;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use graybox_support::tree::{make_removable, make_tree, manifest, only_the_tree_is_left};
use graybox_support::{Scratch, discnice, run};

fn inodes_of_files(root: &Path) -> BTreeMap<OsString, u64> {
    let entries = fs::read_dir(root).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name(), entry.metadata().unwrap().ino())).collect()
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
    // What only some file systems take.
    let flags = || run(Command::new("lsattr").arg(tree.join("file6"))).stdout;
    let _ = Command::new("chattr").arg("+sudA").arg(tree.join("file6")).output();
    let flagged = flags();
    let (before, inodes) = (manifest(&tree), inodes_of_files(&tree));
    let blocks = fs::metadata(tree.join("sparse")).unwrap().blocks();
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(manifest(&tree), before);
    assert_eq!(flags(), flagged);
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
fn names_that_match_nothing_are_told() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("tree/sub")).unwrap();
    fs::write(scratch.path("tree/sub/a"), vec![1; 9000]).unwrap();
    fs::write(scratch.path("tree/b"), vec![2; 5000]).unwrap();
    for mode in [&["--dry-run"][..], &[]] {
        let refresh = |list: &str| {
            scratch.write("list", list.as_bytes());
            run(scratch.discnice(["refresh", "--order", "list", "tree"]).args(mode))
        };
        let inode = || fs::metadata(scratch.path("tree/b")).unwrap().ino();
        let before = inode();
        for wrong in ["tree/sub/a\ntree/b\n", "sub\na\n", ""] {
            let out = refresh(wrong);
            assert_eq!((out.status, out.stderr.lines().count()), (125, 1), "{wrong:?}: {out:?}");
            assert_eq!((out.stdout.as_str(), inode()), ("", before), "{wrong:?}");
        }
        let out = refresh("b\nsub/none\n./sub/a\na\n");
        let line = "discnice: 2 of 4 names in the order given are no files below the directory\n";
        assert_eq!((out.status, out.stderr.as_str()), (0, line));
        assert_eq!(refresh("b\n./sub/a\n").stderr, "");
    }
}
