//! Members that have ended before they are met.

use super::*;

/// A process that has written so many MiB and ended, but is not waited for.
fn ended(file: &Path, written: u32) -> Innocent {
    let mut command = Command::new("dd");
    command.args(["if=/dev/zero", "bs=1M", "status=none"]).arg(format!("count={written}"));
    let mut output = std::ffi::OsString::from("of=");
    output.push(file);
    let child = command.arg(output).spawn().unwrap();
    while !procfs::stat(child.id()).is_some_and(|stat| stat.has_ended()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Innocent(child)
}

/// The kernel shows the account of such a process to the superuser, and to other users on older systems.
#[test]
fn one_that_is_not_waited_for_yet_is_charged() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let ended = ended(&folder.path().join("file"), 3);
    let account = procfs::io(ended.0.id()).map_or(0, |io| io.bytes.into_iter().sum());
    let class = class();
    let (slot, member) = class.register(ended.0.id(), Charged::default(), process::exists).unwrap();
    class.held(slot).unwrap().begin(member, ended.started());
    member.set_state(State::Outside);
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    for _ in 0..100 {
        watch.step(1, &mut Census::default());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(class.total().total(), account);
    assert!(account == 0 || account >= 3 << 20, "{account}");
    assert_eq!(watch.len(), 0);
    assert_eq!(class.listed(ended.0.id()).is_none(), account > 0, "its slot is free for others");
}
