//! Accounts of shells with children that write.

use super::*;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A shell with a child that writes `child` MiB, and that then itself writes `own` MiB.
fn shell(folder: &std::path::Path, child: u32, own: u32) -> std::process::Child {
    let script = format!(
        "read go; dd if=/dev/zero of=a bs=1M count={child} status=none; read go; \
         exec dd if=/dev/zero of=b bs=1M count={own} status=none"
    );
    let mut command = Command::new("sh");
    command.current_dir(folder).args(["-c", &script]).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn what_threads_did_between_two_looks_counts_once() {
    let read = |read| Io { read, ..Io::default() };
    let mut early = Io::default();
    assert_eq!(beyond(read(100), read(150), &mut early), read(0));
    assert_eq!(beyond(read(60), read(20), &mut early), read(0), "50 were seen before");
    assert_eq!(beyond(read(10), read(0), &mut early), read(0), "and so were these");
    assert_eq!(beyond(read(30), read(0), &mut early), read(30), "of a child");
}

#[test]
fn a_process_that_slept_did_nothing() {
    use std::io::Write;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut child = shell(folder.path(), 1, 0);
    std::thread::sleep(Duration::from_millis(50));
    let mut account = OwnAccount::open(child.id(), Charged::default(), || Rest::Known).unwrap();
    assert!(!account.has_slept(), "nothing is known of it yet");
    account.look(|| Rest::Known).unwrap();
    assert!(account.has_slept() && account.has_slept());
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(!account.has_slept(), "it had a child");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!account.has_slept(), "it is gone");
}

#[test]
fn a_childs_account_is_not_the_parents() {
    is_not_the_parents(true);
}

#[test]
fn nor_is_that_of_a_process_that_is_seen_to_end_late() {
    is_not_the_parents(false);
}

#[test]
fn what_no_child_claims_is_ones_own() {
    // Not this process's, in which other tests write at the same time.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut child = shell(folder.path(), 1, 0);
    await_state(child.id(), 'S');
    let mut account = OwnAccount::open(child.id(), Charged::default(), || Rest::Known).unwrap();
    let (before, rest) = (account.own(), Io { read: 5 << 20, ..CHILD });
    account.unclaimed = rest;
    account.inherit(Io { read: 1 << 20, ..CHILD });
    assert_eq!(account.coming, Io::default());
    assert!(
        account.look(|| Rest::Known).unwrap().read >= before.read + (4 << 20)
            && !account.may_be_bereaved()
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

/// As a program that installs a seccomp filter and ends soon: what it moved is no thread's any more, and its state was read
/// before the filter was there.
#[test]
fn what_was_moved_until_the_account_was_read_is_told_by_the_state_of_then() {
    use std::io::Write;
    for (by_now, least, most) in [(Rest::Known, 3 << 20, u64::MAX), (Rest::Children, 0, 1 << 20)] {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut child = shell(folder.path(), 3, 0);
        await_state(child.id(), 'S');
        let mut account =
            OwnAccount::open(child.id(), Charged::default(), || Rest::Children).unwrap();
        let before = account.own().written;
        child.stdin.as_mut().unwrap().write_all(b"\n\n").unwrap();
        await_state(child.id(), 'Z');
        account.look(|| by_now).unwrap();
        account.settle();
        let written = account.own().written - before;
        assert!((least..=most).contains(&written), "{by_now:?}: {written}");
        child.wait().unwrap();
    }
}

/// So that none of it was moved in a state that is not asked for any more.
#[test]
fn the_state_is_asked_for_after_the_account_that_is_opened_was_read() {
    use std::io::Write;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = "read go; exec dd if=/dev/zero of=a bs=1M count=3 status=none";
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(["-c", script]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let id = child.id();
    await_state(id, 'S');
    let confines = || {
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        await_state(id, 'Z');
        Rest::Known
    };
    let mut account = OwnAccount::open(id, Charged::default(), confines).unwrap();
    assert!(account.own().written < 1 << 20, "{account:?}");
    account.look(|| Rest::Known).unwrap();
    assert!(account.own().written >= 3 << 20, "{account:?}");
    child.wait().unwrap();
}

/// Waits until a process is in this state.
fn await_state(id: u32, wanted: char) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // Behind its name, which is in brackets.
    while !state().rsplit_once(") ").unwrap().1.starts_with(wanted) {
        assert!(Instant::now() < deadline, "it goes on: {}", state());
        std::thread::sleep(Duration::from_millis(1));
    }
}

const CHILD: Io = Io { read: 0, written: 4 << 20, cancelled: 0 };

/// Tests a child with an end that is reported before what it did arrives, or after that.
fn is_not_the_parents(told: bool) {
    use std::io::Write;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut child = shell(folder.path(), 4, 0);
    std::thread::sleep(Duration::from_millis(50));
    let mut account = OwnAccount::open(child.id(), Charged::default(), || Rest::Known).unwrap();
    account.expect_children();
    if told {
        account.inherit(CHILD);
    }
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while account.seen.written < 4 << 20 {
        assert!(Instant::now() < deadline, "{account:?}: the kernel adds what the child did");
        std::thread::sleep(Duration::from_millis(10));
        let own = account.look(|| Rest::Known).unwrap();
        assert!(own.written < 1 << 20, "{own:?}: the child's 4 MiB are the child's");
    }
    if !told {
        assert!(account.may_be_bereaved());
        account.inherit(CHILD);
    }
    let own = account.look(|| Rest::Known).unwrap();
    assert!(own.written < 1 << 20, "{own:?}: the child's 4 MiB are the child's");
    let later = OwnAccount::open(child.id(), Charged::default(), || Rest::Known).unwrap();
    assert!(later.own().written < 1 << 20, "{later:?}: also for one who comes later");
    child.kill().unwrap();
    child.wait().unwrap();
}
