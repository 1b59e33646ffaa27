//! Files that are closed in folders that are watched.

use discnice_units::Nanos;

use super::*;

const SLOW: Pace = Pace { class: 1, portion: 4096, period: Nanos::SECOND };
const FAST: Pace = Pace { class: 2, ..SLOW };

/// Runs something that has files written back; which they were, and for which class.
fn noted(act: impl FnOnce(WriteBack<'_>)) -> Vec<(String, u64)> {
    let mut names = Vec::new();
    act(&mut |path, pace| {
        names.push((path.file_name().unwrap().to_str().unwrap().to_owned(), pace.class));
        fs::symlink_metadata(path).ok()
    });
    names.sort();
    names
}

fn written(closed: &mut Closed) -> Vec<(String, u64)> {
    noted(|note| closed.follow(note))
}

fn slowly<const N: usize>(names: [&str; N]) -> Vec<(String, u64)> {
    names.map(|name| (name.to_owned(), SLOW.class)).into()
}

/// A folder so deep that what others do beside the scene is not seen from it.
fn deep() -> (tempfile::TempDir, PathBuf) {
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let folder = (0..tuning::writeback::FOLDERS_ABOVE)
        .fold(scene.path().to_owned(), |above, _| above.join("below"));
    fs::create_dir_all(&folder).unwrap();
    (scene, folder)
}

#[test]
fn files_that_are_closed_in_folders_new_and_known_are_found() {
    let (_scene, folder) = deep();
    let put = |name: &str| fs::write(folder.join(name), "x").unwrap();
    put("before");
    fs::create_dir(folder.join("beside")).unwrap();
    put("beside/unseen");
    let mut closed = Closed::default();
    assert!(closed.events().is_none());
    let open = folder.join("open");
    let before = noted(|note| closed.expect_beside(&open, SLOW, note));
    assert_eq!(before, slowly(["before", "unseen"]), "they were there a moment before");
    put("first");
    assert_eq!(written(&mut closed), slowly(["first"]));
    fs::create_dir_all(folder.join("new/inner")).unwrap();
    put("new/early");
    put("new/inner/early");
    assert_eq!(written(&mut closed), slowly(["early", "early"]));
    put("new/inner/late");
    fs::rename(folder.join("first"), folder.join("renamed")).unwrap();
    put("beside/unseen");
    assert_eq!(written(&mut closed), slowly(["late", "renamed", "unseen"]));
    assert!(noted(|note| closed.expect_beside(&open, FAST, note)).is_empty());
    put("second");
    assert_eq!(written(&mut closed), [("second".to_owned(), FAST.class)], "the last that wrote it");
    let made = [SLOW, FAST].map(|pace| closed.made.files(pace.class));
    assert_eq!(made, [(6, 6), (1, 1)], "not what was only written again, or moved");
    fs::remove_dir_all(folder.join("new")).unwrap();
    let _ = written(&mut closed);
    assert!(!closed.known.contains_key(&folder.join("new")), "it is forgotten");
}

#[test]
fn only_new_folders_count_where_no_writer_was_seen() {
    let (_scene, folder) = deep();
    fs::create_dir(folder.join("early")).unwrap();
    fs::write(folder.join("early/inner"), "x").unwrap();
    let mut closed = Closed::default();
    assert_eq!(noted(|note| closed.expect_in(&folder, SLOW, note)), slowly(["inner"]));
    assert!(noted(|note| closed.expect_in(&folder, SLOW, note)).is_empty());
    fs::write(folder.join("file"), "x").unwrap();
    assert!(written(&mut closed).is_empty());
    fs::create_dir(folder.join("new")).unwrap();
    assert!(written(&mut closed).is_empty());
    fs::write(folder.join("new/file"), "x").unwrap();
    assert_eq!(written(&mut closed), slowly(["file"]));
}
