use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_requirements::skip;

use super::*;

/// A directory with the files `one` and `other`, and its place.
fn directory() -> (tempfile::TempDir, Place) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    for name in ["one", "other"] {
        std::fs::write(dir.join(name), vec![7; 8192]).unwrap();
    }
    let place = Place::find(&dir).unwrap();
    (parent, place)
}

fn inode(parent: &Path, name: &str) -> u64 {
    std::fs::metadata(parent.join("dir").join(name)).unwrap().ino()
}

fn index(job: &Job<'_>, name: &[u8]) -> usize {
    job.tree.nodes.iter().position(|node| node.name.as_bytes() == name).unwrap()
}

#[test]
fn a_copy_that_stands_after_the_clearing_is_a_file_rewritten() {
    let (parent, place) = directory();
    let mut job = Job::begin(&place, &Options::default()).unwrap();
    let (one, other) = (index(&job, b"one"), index(&job, b"other"));
    let copy = inode(parent.path(), "one");
    job.unsettled = vec![(one, copy), (other, u64::MAX)];
    let (files, bytes) = job.finish().unwrap();
    assert_eq!((files, bytes), (1, Bytes::new(job.tree.nodes[one].meta.allocated)));
    assert_eq!(job.left, [(other, Why::InUse)], "the original went back to its place");
}

#[test]
fn a_refresh_is_refused_if_all_originals_went_back() {
    let (_parent, place) = directory();
    let mut job = Job::begin(&place, &Options::default()).unwrap();
    let indices = [index(&job, b"one"), index(&job, b"other")];
    job.unsettled = indices.map(|index| (index, u64::MAX)).to_vec();
    let Err(RefreshError::Refused(lines)) = job.finish() else { panic!("was not refused") };
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].ends_with(": in use by another process"), "{lines:?}");
}

#[test]
fn copies_that_lie_worse_are_thrown_away() {
    let (parent, place) = directory();
    let area = Area::create(&place).unwrap();
    let mut job = Job::begin(&place, &Options { only_better: true, ..Options::default() }).unwrap();
    let Some(before) = job.before else {
        skip!("this file system does not tell where files lie");
    };
    let originals = ["one", "other"].map(|name| inode(parent.path(), name));
    // As if reading took no seek at all until now.
    job.before = Some(Survey { seeks: 0, ..before });
    job.run(&area, &mut |_, _, _| {}).unwrap();
    assert_eq!(job.finish().unwrap(), (0, Bytes::ZERO));
    let worse = job.report(0, Bytes::ZERO, None).worse.expect("told");
    assert!(worse.seeks > 0 && worse.files == 2, "{worse:?}");
    assert_eq!(["one", "other"].map(|name| inode(parent.path(), name)), originals);
    assert!(Area::left_over(&place, Some(&area)).unwrap().is_empty());
}
