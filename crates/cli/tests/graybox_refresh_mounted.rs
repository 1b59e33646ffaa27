//! `discnice refresh` leaves files alone that are mounted elsewhere, or covered by a mount there, as those of containers are,
//! and a mount inside that nothing serves any more.

mod graybox_support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use discnice_requirements::skip;
use graybox_support::{Scratch, run};

const USERS: [u32; 2] = [0, 54_321];

/// Mounts of its own namespace, which it reads once it is told to.
const CONTAINER: &str = "mount --bind 'home/tree/one file' shown && mount --bind other home/tree/covered && echo ready && \
                         read -r line && cat shown home/tree/covered";

/// A container, ended when dropped.
struct Container(Child);

impl Container {
    fn start(scratch: &Scratch) -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", CONTAINER]).current_dir(scratch.path(""));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut container = Self(command.spawn().ok()?);
        let mut line = String::new();
        BufReader::with_capacity(1, container.0.stdout.as_mut()?).read_line(&mut line).ok()?;
        (line == "ready\n").then_some(container)
    }

    /// Returns what it finds in its mounts.
    fn read(&mut self) -> String {
        self.0.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let mut found = String::new();
        self.0.stdout.as_mut().unwrap().read_to_string(&mut found).unwrap();
        found
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_that_mounts_hold_on_to_stay() {
    for user in USERS {
        let scratch = Scratch::new();
        if !scratch.can_become_nobody() {
            skip!("two users need root");
        }
        fs::create_dir_all(scratch.path("home/tree")).unwrap();
        for name in ["shown", "other", "home/tree/one file", "home/tree/covered", "home/tree/free"]
        {
            scratch.write(name, name.as_bytes());
            chown(scratch.path(name), Some(user), Some(user)).unwrap();
        }
        for name in ["home", "home/tree"] {
            chown(scratch.path(name), Some(user), Some(user)).unwrap();
        }
        let Some(mut container) = Container::start(&scratch) else {
            skip!("no mount namespace of its own");
        };
        let inodes = || {
            ["one file", "covered", "free"]
                .map(|name| fs::metadata(scratch.path("home/tree").join(name)).unwrap().ino())
        };
        let before = inodes();
        let out = run(scratch.discnice(["refresh", "home/tree"]).uid(user).gid(user));
        assert_eq!(out.status, 0, "{out:?}");
        assert!(out.stdout.contains("one file: mounted elsewhere"), "{out:?}");
        assert!(out.stdout.contains("covered: mounted elsewhere"), "{out:?}");
        let after = inodes();
        assert!(after[..2] == before[..2] && after[2] != before[2], "{before:?} {after:?}");
        scratch.write("home/tree/one file", b"new, ");
        assert_eq!(container.read(), "new, other", "what the container sees");
    }
}

/// Mounts what nothing serves at `tree/sub/dead` and `tree/dead`, and refreshes.
const DEAD: &str = "for at in tree/dead tree/sub/dead; do \
                    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none $at 3<>/dev/fuse || exit 99; done; \
                    exec \"$0\" refresh tree";

#[test]
fn a_mount_that_nothing_serves_is_left_alone() {
    let scratch = Scratch::new();
    for name in ["tree/dead", "tree/sub/dead"] {
        fs::create_dir_all(scratch.path(name)).unwrap();
    }
    for name in ["tree/one", "tree/sub/other"] {
        scratch.write(name, b"x");
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", DEAD]).arg(graybox_support::discnice());
    command.env("XDG_CACHE_HOME", scratch.path("")).current_dir(scratch.path(""));
    let out = run(&mut command);
    if out.status == 99 || out.stderr.contains("unshare failed") {
        skip!("needs the right to mount, and FUSE");
    }
    assert_eq!(out.status, 0, "{out:?}");
    assert!(out.stdout.contains("rewrote 2 files"), "{out:?}");
    for name in ["dead", "sub/dead"] {
        let line = format!("    {name}: Transport endpoint is not connected\n");
        assert!(out.stdout.contains(&line), "{out:?}");
    }
}
