use std::fs;
use std::path::{Path, PathBuf};

use super::marker::{Staged, WorkFile};
use super::status::stat;
use super::*;

/// Makes a directory in which a refresh that was then interrupted has exchanged the file `one` for its copy; the
/// original and the copy were both changed since.
fn both_changed() -> (tempfile::TempDir, PathBuf) {
    interrupted(|place, area| {
        let old = stat(area.fd(), c"original").unwrap();
        let mut facts = old.facts();
        facts.size += 1;
        let new = stat(place.dir.as_fd(), c"one").unwrap().ino;
        Staged { old: old.ino, new, facts }
    })
}

/// Makes a directory with the file `one`, and a work area with a file of which `staged` says what a refresh took it for
/// that was then interrupted.
fn interrupted(staged: impl Fn(&Place, &Area<'_>) -> Staged) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let dir = parent.path().join("dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("one"), "changed in the directory").unwrap();
    let place = Place::find(&dir).unwrap();
    let area = Area::create(&place).unwrap();
    let inside = parent.path().join(area.shown());
    fs::write(inside.join("original"), "changed, too").unwrap();
    let name = WorkFile::Staged(staged(&place, &area)).to_string();
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

/// Makes what is left where a refresh was killed as an exchange had caught a file that another program had just put there:
/// it is in the work area, and the copy in the directory. `grown` is by how much the copy was longer then.
fn foreign_caught(grown: u64) -> (tempfile::TempDir, PathBuf) {
    interrupted(|place, _| {
        let copy = stat(place.dir.as_fd(), c"one").unwrap();
        let mut facts = copy.facts();
        facts.size += grown;
        Staged { old: u64::MAX, new: copy.ino, facts }
    })
}

#[test]
fn a_file_that_an_exchange_has_caught_goes_back() {
    let (parent, dir) = foreign_caught(0);
    let cleared = clear_up(&dir, false).unwrap();
    assert!(cleared.recovered && cleared.kept.is_empty(), "{cleared:?}");
    assert_eq!(fs::read(dir.join("one")).unwrap(), b"changed, too");
    assert_eq!(names(parent.path()), ["dir"]);
}

#[test]
fn what_was_written_to_the_copy_since_is_no_less_than_a_file_that_was_caught() {
    let (parent, dir) = foreign_caught(1);
    let cleared = clear_up(&dir, false).unwrap();
    assert_eq!(fs::read(dir.join("one")).unwrap(), b"changed in the directory");
    let names = names(parent.path());
    assert!(names.len() == 2 && names[1].starts_with("dir.kept-by-refresh-"), "{names:?}");
    assert_eq!(cleared.kept, [format!("{}{KEPT}", names[1])]);
}
