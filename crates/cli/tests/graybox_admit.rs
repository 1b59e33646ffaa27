//! `discnice admit`: the grant reaches the command, one after the other, and never for ever.

mod graybox_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use graybox_support::{Scratch, run};

#[test]
fn the_grant_reaches_the_command() {
    let scratch = Scratch::new();
    let out = run(scratch
        .discnice(["admit", "--min", "1M", "--max", "64M", "--multiple", "1M"])
        .args(["--", "sh", "-c", "echo $DISCNICE_MEMORY {}; exit 7"]));
    assert_eq!(out.status, 7, "{}", out.stderr);
    assert_eq!(out.stdout, "67108864 67108864\n");
}

#[test]
fn senseless_demands_and_missing_commands() {
    let scratch = Scratch::new();
    for (words, status) in [
        (&["--min", "2G", "--max", "1G", "--", "true"][..], 125),
        (&["--min", "99999999999T", "--max", "1G", "--", "true"], 125),
        (&["--min", "1M", "--max", "18446744073709551616", "--", "true"], 125),
        (&["--min", "1M", "--max", "18446744073709551615B", "--", "true"], 125),
        (&["--min", "0", "--max", "1G", "--", "true"], 125),
        (&["--min", "1M", "--max", "1G", "--multiple", "0", "--", "true"], 125),
        (&["--min", "5K", "--max", "9K", "--multiple", "10K", "--", "true"], 125),
        (&["--min", "1M", "--max", "1M"], 125),
        (&["--min", "1M", "--max", "1M", "--", "no-such-program-here"], 127),
        (&["--min", "1M", "--max", "1M", "--", "/"], 126),
        (&["--min", "1024T", "--max", "2048T", "--timeout", "0", "--", "true"], 124),
    ] {
        let out = run(scratch.discnice(["admit"]).args(words));
        assert_eq!(out.status, status, "{words:?}: {}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{words:?}: {}", out.stderr);
    }
}

#[test]
fn without_a_place_for_the_ledger() {
    let scratch = Scratch::new();
    scratch.write("file", b"");
    let mut admit = scratch.discnice(["admit", "--min", "1M", "--max", "1M", "--", "true"]);
    let out = run(admit.env("XDG_RUNTIME_DIR", scratch.path("file")));
    assert_eq!((out.status, out.stderr.as_str()), (0, ""), "another place serves");
    let ledger = scratch.path("discnice/memory-grants");
    let private = PermissionsExt::from_mode(0o700);
    fs::create_dir(scratch.path("discnice")).unwrap();
    fs::set_permissions(scratch.path("discnice"), private).unwrap();
    let mut wrong: Vec<Box<dyn Fn()>> = vec![Box::new(|| fs::create_dir(&ledger).unwrap())];
    wrong.push(Box::new(|| symlink(scratch.path("file"), &ledger).unwrap()));
    wrong.push(Box::new(|| {
        assert!(Command::new("mkfifo").arg(&ledger).status().unwrap().success());
    }));
    for make in wrong {
        make();
        let out = run(&mut scratch.discnice(["admit", "--min", "1M", "--max", "1M", "--", "true"]));
        let line = format!(
            "discnice: cannot open the ledger of memory grants: {} is no plain file; move it away\n",
            ledger.display()
        );
        assert_eq!((out.status, out.stderr), (125, line));
        fs::remove_dir(&ledger).or_else(|_| fs::remove_file(&ledger)).unwrap();
    }
}

//= gray-box/4.3-wait
#[test]
fn two_that_do_not_fit_together_run_one_after_the_other() {
    let scratch = Scratch::new();
    let available = discnice_graybox::mac::facts().available;
    let (min, max) = ((available / 3 * 2).to_string(), available.to_string());
    let start = Instant::now();
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            scratch
                .discnice(["admit", "--min", &min, "--max", &max, "--", "sleep", "0.5"])
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert!(start.elapsed() >= Duration::from_secs(1), "they ran at the same time");
}

#[test]
fn a_killed_waiter_does_not_block_the_queue() {
    let scratch = Scratch::new();
    let mut waiter = scratch
        .discnice(["admit", "--min", "1024T", "--max", "1024T", "--", "true"])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let behind = ["admit", "--min", "1M", "--max", "1M", "--timeout", "0", "--", "true"];
    assert_eq!(run(&mut scratch.discnice(behind)).status, 124, "passed one who was first");
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    assert_eq!(run(&mut scratch.discnice(behind)).status, 0);
}
