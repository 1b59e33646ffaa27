//! Every system call of `discnice refresh` fails in turn: no file is lost or changed, and the next refresh finds nothing in its
//! way (ADR 19).
//!
//! Of each call the first time it is made, and with `DISCNICE_INJECT=all`, as in `make inject`, every one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::failing::{Fault, Scene, Scope, give, make_private};
use discnice_tests::faults::{Depth, OURS, faults, is_orderly, scenes, try_each};
use discnice_tests::process::run;
use discnice_tests::skip;

/// A directory to refresh, by its path: a copy that another process makes. A child that another test forks meanwhile would
/// inherit what this process has open, and have it in use until it executes its program.
fn tree(scene: &Scene) -> PathBuf {
    let (model, copy) = (scene.path("model"), scene.path("around"));
    if !model.exists() {
        plant(&model);
    }
    let _ = fs::remove_dir_all(&copy);
    run(Command::new("cp").arg("-a").args([&model, &copy])).succeeded();
    copy.join("tree")
}

/// Makes a directory with a tree in it.
fn plant(root: &Path) {
    make_private(root);
    let tree = root.join("tree");
    make_private(&tree);
    make_private(&tree.join("below"));
    for (name, size) in
        [("large", 300_000), ("small", 3000), ("below/empty", 0), ("below/other", 70)]
    {
        let contents: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
        fs::write(tree.join(name), contents).expect("room on the disk");
        give(&tree.join(name));
    }
    fs::hard_link(tree.join("small"), tree.join("below/same")).expect("a link");
}

/// Names, contents and rights of all below, in a text.
fn contents(tree: &Path) -> String {
    let script = "find . -printf '%P %y %m %U %G %n\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum";
    run(Command::new("sh").args(["-c", script]).current_dir(tree)).succeeded().text()
}

#[test]
fn calls_of_refresh() {
    let scenes = match scenes() {
        Ok(scenes) => scenes,
        Err(why) => skip!("{why}"),
    };
    let path = tree(&scenes[0]);
    let bare = scenes[0].run(Scope::Command, None, &refresh(&path)).expect("it does not hang");
    assert!(bare.succeeded().text().contains("rewrote"));
    try_each(&scenes, faults(&scenes[0], Depth::First), refresh_case).none("refresh");
}

fn refresh(tree: &Path) -> [&str; 2] {
    ["refresh", tree.to_str().expect("text")]
}

/// Nothing is lost, and the next refresh finds nothing in its way.
fn refresh_case(scene: &Scene, fault: &Fault) -> Result<(), String> {
    let path = tree(scene);
    let before = contents(&path);
    let outcome = is_orderly(scene.run(Scope::Command, Some(*fault), &refresh(&path)), 20)?;
    if contents(&path) != before {
        return Err(format!("changed: {outcome:?}"));
    }
    if ![Some(0), Some(1), Some(OURS)].contains(&outcome.status) {
        return Err(format!("{outcome:?}"));
    }
    is_cleared_up(scene, &path, &before)
}

/// The next refresh does it, and leaves nothing beside the directory.
fn is_cleared_up(scene: &Scene, path: &Path, before: &str) -> Result<(), String> {
    let again = scene.run(Scope::Command, None, &refresh(path)).ok_or("the next one hangs")?;
    let beside = fs::read_dir(path.parent().expect("a folder")).expect("our folder").count();
    if again.status == Some(0) && contents(path) == before && beside == 1 {
        return Ok(());
    }
    Err(format!("{beside} beside the directory, and the next refresh: {again:?}"))
}
