//! Every system call of policyd fails in turn: the program that it holds still reads all, and nothing stays stopped (ADR 19).
//!
//! Of each call the first time it is made, and those by which programs are started, held and let go; with `DISCNICE_INJECT=all`, as in
//! `make inject`, every one, or 200 of those that it makes again and again.

use std::fs;
use std::path::Path;

use discnice_tests::failing::{Fault, Scene, Scope, Which};
use discnice_tests::faults::{
    Depth, NOT_EXECUTABLE, OURS, faults, leaves_nothing, scenes, try_each,
};
use discnice_tests::process::Outcome;
use discnice_tests::skip;

/// Bytes that the program which policyd holds reads, and its limit.
const SIZE: usize = 4 << 20;
const LIMIT: &str = "10M";

/// A static program that reads a file, which only policyd can hold.
fn held(scene: &Scene) -> Option<Vec<String>> {
    let data = scene.path("data");
    fs::write(&data, vec![1; SIZE]).expect("room on the disk");
    let busybox = Path::new("/bin/busybox");
    let (from, options) =
        (format!("if={}", data.display()), ["of=/dev/null", "bs=64k", "iflag=direct"]);
    let words =
        ["run", "--mechanism", "freeze", "--disk", LIMIT, "--", busybox.to_str()?, "dd", &from];
    busybox.exists().then(|| words.iter().chain(&options).map(|word| (*word).to_owned()).collect())
}

#[test]
fn calls_of_the_daemon() {
    let scenes = match scenes() {
        Ok(scenes) => scenes,
        Err(why) => skip!("{why}"),
    };
    for scene in &scenes {
        let Some(words) = held(scene) else { skip!("no static busybox") };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let bare = scene.run(Scope::Program, None, &words).expect("it does not hang");
        assert_eq!(bare.status, Some(0), "{bare:?}");
    }
    try_each(&scenes, faults(&scenes[0], Depth::Sample), daemon_case).none("policyd");
}

/// The program is held and reads all, or one line says why it was not started.
fn daemon_case(scene: &Scene, fault: &Fault) -> Result<(), String> {
    scene.renew();
    let words = held(scene).ok_or("no static busybox")?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = scene.run(Scope::Program, Some(*fault), &words).ok_or("it hangs")?;
    // What the program itself says has its speed in it.
    let complaint = outcome.complaint();
    let whole = complaint.contains("64+0 records out");
    if !complaint.contains("panicked")
        && (outcome.status == Some(0) && whole || is_refused(fault, &outcome))
    {
        return leaves_nothing(scene);
    }
    Err(format!("{outcome:?}"))
}

/// Returns true if one line says why the program was not started. If no program can be executed, policyd is none either, which
/// another line says.
fn is_refused(fault: &Fault, outcome: &Outcome) -> bool {
    let complaint = outcome.complaint();
    let is_of_policyd = |line: &&str| line.starts_with("discnice: not watched from outside");
    let (of_policyd, others): (Vec<&str>, Vec<&str>) = complaint.lines().partition(is_of_policyd);
    let executes = fault.call == libc::SYS_execve;
    let for_good = executes && matches!(fault.which, Which::From(_));
    let [line] = others[..] else { return false };
    let told = match outcome.status {
        Some(NOT_EXECUTABLE) => executes && line.starts_with("discnice: cannot run"),
        Some(OURS) => line.contains("config.toml"),
        _ => false,
    };
    told && of_policyd.len() <= usize::from(for_good)
}
