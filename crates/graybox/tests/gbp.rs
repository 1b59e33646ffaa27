//! The program `gbp` with the paper's flags.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn gbp(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gbp")).args(words).current_dir(dir).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// `hot` is cached, `cold` is not.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for name in ["cold", "hot"] {
        fs::write(dir.path().join(name), format!("{name}\n").repeat(20_000)).unwrap();
    }
    let file = fs::File::open(dir.path().join("cold")).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    dir
}

//= gray-box/4.1.2-gbp-mem
//= gray-box/4.2.4-compose
#[test]
fn each_flag() {
    let dir = folder();
    let out = gbp(dir.path(), &["-mem", "cold", "hot"]);
    assert_eq!(text(&out.stdout), "hot\ncold\n");
    let out = gbp(dir.path(), &["-compose", "-0", "cold", "hot"]);
    assert_eq!(text(&out.stdout), "hot\0cold\0");
    let out = gbp(dir.path(), &["-file", "hot", "cold"]);
    assert_eq!(out.stdout.len(), "hot\ncold\n".len());
    let out = gbp(dir.path(), &["-mem", "-out", "-align", "5", "cold"]);
    assert_eq!(text(&out.stdout), "cold\n".repeat(20_000));
}

#[test]
fn wrong_use_and_bad_files() {
    let dir = folder();
    for words in [&["-nonsense"][..], &["-out"], &["-out", "hot", "cold"], &["-align", "0", "hot"]]
    {
        let out = gbp(dir.path(), words);
        assert_eq!(out.status.code(), Some(125), "{words:?}");
        assert_eq!(text(&out.stderr).lines().count(), 1, "{words:?}");
    }
    let out = gbp(dir.path(), &["-mem", "gone", "hot"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(1), "hot\n"));
    assert_eq!(text(&out.stderr), "gbp: gone: No such file or directory\n");
    assert!(gbp(dir.path(), &["-help"]).status.success());
}
