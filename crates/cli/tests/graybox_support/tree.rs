//! A directory with one of everything to refresh, and all that must be kept of one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::Scratch;

/// All that must be kept of a tree, by path.
pub type Manifest = BTreeMap<Vec<u8>, String>;

pub fn manifest(root: &Path) -> Manifest {
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
pub fn without_times(manifest: &Manifest) -> Manifest {
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
pub fn make_tree(root: &Path) {
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

pub fn make_removable(root: &Path) {
    fs::set_permissions(root.join("sub/deeper"), fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn only_the_tree_is_left(scratch: &Scratch) -> bool {
    let names = fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    names.eq(["tree"])
}
