use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::marker::{Entry, Staged};
use super::status::stat;
use super::*;

/// Makes a directory in which a refresh that was then interrupted has exchanged the file `one` for its copy; the
/// original and the copy were both changed since.
fn both_changed() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let dir = parent.path().join("dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("one"), "changed in the directory").unwrap();
    let place = Place::find(&dir).unwrap();
    let area = Area::create(&place).unwrap();
    let inside = parent.path().join(area.shown());
    fs::write(inside.join("original"), "changed, too").unwrap();
    let old = stat(area.fd(), c"original").unwrap();
    let mut facts = old.facts();
    facts.size += 1;
    let new = fs::metadata(dir.join("one")).unwrap().ino();
    let name = Entry::Staged(Staged { old: old.ino, new, facts }).to_string();
    fs::rename(inside.join("original"), inside.join(name)).unwrap();
    (parent, dir)
}

fn names(parent: &Path) -> Vec<String> {
    let entries = fs::read_dir(parent).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_is_kept_is_told_also_by_an_error() {
    let (parent, dir) = both_changed();
    let _in_use = fs::File::open(dir.join("one")).unwrap();
    let error = refresh(&dir, &Options::default(), &mut |_, _, _| ()).unwrap_err().to_string();
    let names = names(parent.path());
    assert!(names.len() == 2 && names[1].starts_with("dir.kept-by-refresh-"), "{names:?}");
    assert!(error.starts_with("one: in use by"), "{error}");
    assert!(error.contains(&format!("\n{}{KEPT}", names[1])), "{error}");
}
