//! `discnice refresh --when-worth`: rewrites once readings have lost more than a rewriting takes.

mod graybox_support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_requirements::skip;
use graybox_support::{Out, Scratch, discnice, run};

const FILES: usize = 40;
/// Pieces in which each of them is written.
const PIECES: usize = 4;

/// Makes a directory with files in pieces far apart on the disk: what lay between them has been removed. So a rewriting
/// gains, however little free space in one piece there is.
fn scattered(scratch: &Scratch) {
    for folder in ["tree", "between"] {
        fs::create_dir(scratch.path(folder)).unwrap();
    }
    for piece in 0..PIECES {
        for number in 0..FILES {
            append(&scratch.path(format!("tree/{number}")), &vec![number as u8; 32 << 10]);
            append(&scratch.path(format!("between/{number}-{piece}")), &[0; 256 << 10]);
        }
    }
    fs::remove_dir_all(scratch.path("between")).unwrap();
}

/// Appends to a file, which has its place on the disk before anything else is written.
fn append(path: &Path, data: &[u8]) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(data).unwrap();
    file.sync_all().unwrap();
}

fn look(scratch: &Scratch, words: &[&str]) -> Out {
    let mut command = scratch.discnice(["refresh", "--when-worth"]);
    run(command.args(words).arg("tree").env("XDG_STATE_HOME", scratch.path("state")))
}

fn inodes(scratch: &Scratch) -> Vec<u64> {
    let inode = |number| fs::metadata(scratch.path(format!("tree/{number}"))).unwrap().ino();
    (0..FILES).map(inode).collect()
}

fn history(scratch: &Scratch) -> PathBuf {
    let files = fs::read_dir(scratch.path("state/discnice/refresh")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn kept(scratch: &Scratch) -> serde_json::Value {
    serde_json::from_slice(&fs::read(history(scratch)).unwrap()).unwrap()
}

/// Makes the last look so many days older.
fn let_pass(scratch: &Scratch, days: u64) {
    let mut kept = kept(scratch);
    let last = kept["looks"].as_array_mut().unwrap().last_mut().unwrap();
    last["at"] = (last["at"].as_u64().unwrap() - days * 86_400).into();
    fs::write(history(scratch), kept.to_string()).unwrap();
}

//= gray-box/4.2.5-when
#[test]
fn a_directory_is_rewritten_once_readings_have_lost_what_that_takes() {
    let scratch = Scratch::new();
    scattered(&scratch);
    let surveyed = run(&mut scratch.discnice(["refresh", "--dry-run", "tree"]));
    if !surveyed.stdout.contains("seeks to read all") {
        skip!("this file system does not tell where files lie");
    }
    let before = inodes(&scratch);
    let only_told = look(&scratch, &["--dry-run"]);
    assert!(only_told.stdout.starts_with("tree: not worth it yet\n"), "{only_told:?}");
    assert!(!scratch.path("state").exists());
    // One reading has lost less than reading and writing takes.
    let out = look(&scratch, &[]);
    assert!(out.status == 0 && out.stdout.starts_with("tree: not worth it yet\n"), "{out:?}");
    assert_eq!(inodes(&scratch), before);
    let first = kept(&scratch);
    let seeks = first["looks"][0]["seeks"].as_u64().unwrap();
    if seeks < 5 {
        skip!("this file system laid the files together all the same");
    }
    // Another day, read a hundredth of a time.
    let_pass(&scratch, 1);
    assert!(look(&scratch, &["--reads", "0.01"]).stdout.contains("not worth it yet"));
    // Two days, read five times each.
    let_pass(&scratch, 2);
    let out = look(&scratch, &["--reads", "5"]);
    assert!(out.stdout.starts_with("tree: worth it\n"), "{out:?}");
    assert!(out.stdout.contains("rewrote 40 files"), "{out:?}");
    assert_ne!(inodes(&scratch), before);
    let last = kept(&scratch);
    assert_eq!(last["looks"].as_array().unwrap().len(), 3);
    assert!(last["looks"][2]["seeks_after"].as_u64().unwrap() < seeks, "{last}");
    assert_eq!(last["lost_seconds"], 0.0);
}

/// Makes the losses so far larger than any refresh takes.
fn lose_much(scratch: &Scratch) {
    let mut kept = kept(scratch);
    kept["lost_seconds"] = 1e6.into();
    fs::write(history(scratch), kept.to_string()).unwrap();
}

#[test]
fn what_was_lost_counts_only_while_its_reason_lasts() {
    let scratch = Scratch::new();
    scattered(&scratch);
    if !look(&scratch, &[]).stdout.contains("each reading of all files loses") {
        skip!("this file system does not tell where files lie");
    }
    if kept(&scratch)["looks"][0]["seeks"].as_u64().unwrap() < 5 {
        skip!("this file system laid the files together all the same");
    }
    let name = history(&scratch);
    let dev = format!("{:x}-", fs::metadata(scratch.path("tree")).unwrap().dev());
    assert!(!name.file_name().unwrap().to_str().unwrap().starts_with(&dev), "{name:?}");
    // A refresh by hand is noted, but begins no history.
    lose_much(&scratch);
    let mut by_hand = scratch.discnice(["refresh", "tree"]);
    let out = run(by_hand.env("XDG_STATE_HOME", scratch.path("state")));
    assert_eq!((out.status, out.stderr.as_str()), (0, ""));
    assert_eq!(kept(&scratch)["lost_seconds"], 0.0);
    let out = run(by_hand.env("XDG_STATE_HOME", scratch.path("none")));
    assert!(out.status == 0 && !scratch.path("none").exists(), "{out:?}");
    // Files are removed.
    lose_much(&scratch);
    for number in 1..FILES {
        fs::remove_file(scratch.path(format!("tree/{number}"))).unwrap();
    }
    fs::write(scratch.path("tree/0"), vec![0; 4096]).unwrap();
    let out = look(&scratch, &[]);
    assert!(out.stdout.starts_with("tree: not worth it yet\n"), "{out:?}");
}

#[test]
fn a_history_that_cannot_be_used_or_kept_is_told_and_nothing_rewritten() {
    let scratch = Scratch::new();
    scattered(&scratch);
    if !look(&scratch, &[]).stdout.contains("each reading of all files loses") {
        skip!("this file system does not tell where files lie");
    }
    let before = inodes(&scratch);
    fs::write(history(&scratch), "{torn").unwrap();
    let out = look(&scratch, &[]);
    assert!(out.status == 0 && out.stderr.contains("begins anew"), "{out:?}");
    assert_eq!(
        (out.stderr.lines().count(), kept(&scratch)["looks"].as_array().unwrap().len()),
        (1, 1)
    );
    // Another directory with the same number: its history is not this one's.
    let mut other = kept(&scratch);
    other["directory"] = "/elsewhere".into();
    other["lost_seconds"] = 1e9.into();
    fs::write(history(&scratch), other.to_string()).unwrap();
    assert!(look(&scratch, &[]).stdout.contains("not worth it yet"));
    fs::remove_dir_all(scratch.path("state")).unwrap();
    scratch.write("state", b"a file in its place");
    let out = look(&scratch, &["--reads", "100000"]);
    assert_eq!(out.status, 125, "{out:?}");
    assert!(out.stderr.contains("cannot keep the history in"), "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
    assert_eq!(inodes(&scratch), before);
}

#[test]
fn bad_numbers_and_file_systems_without_places_are_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tree")).unwrap();
    for bad in ["0", "-1", "nan", "many", "1e9"] {
        let out = look(&scratch, &[&format!("--reads={bad}")]);
        assert_eq!((out.status, out.stderr.lines().count()), (125, 1), "{out:?}");
    }
    let alone = run(&mut scratch.discnice(["refresh", "--reads", "2", "tree"]));
    assert_eq!(alone.status, 125, "{alone:?}");
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        skip!("there is no file system in memory");
    };
    fs::write(memory.path().join("file"), vec![1; 200_000]).unwrap();
    let mut command = Command::new(discnice());
    command.args(["refresh", "--when-worth"]).arg(memory.path());
    let out = run(command.env("XDG_STATE_HOME", scratch.path("state")));
    assert_eq!(out.status, 125, "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
}

#[test]
fn the_units_are_accepted_by_systemd() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");
    let scratch = Scratch::new();
    let unit = fs::read_to_string(format!("{folder}/discnice-refresh@.service.in")).unwrap();
    let program = discnice();
    let unit = unit.replace("@PREFIX@/bin/discnice", program.to_str().unwrap());
    scratch.write("discnice-refresh@.service", unit.as_bytes());
    fs::copy(format!("{folder}/discnice-refresh@.timer"), scratch.path("discnice-refresh@.timer"))
        .unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user", "--man=no", "--recursive-errors=no"]);
    let instance = scratch.path("discnice-refresh@tmp.timer");
    fs::copy(scratch.path("discnice-refresh@.timer"), &instance).unwrap();
    fs::copy(
        scratch.path("discnice-refresh@.service"),
        scratch.path("discnice-refresh@tmp.service"),
    )
    .unwrap();
    verify.arg(&instance).arg(scratch.path("discnice-refresh@tmp.service"));
    let Ok(out) = verify.env("XDG_RUNTIME_DIR", scratch.path("")).output() else {
        skip!("systemd-analyze is missing");
    };
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}
