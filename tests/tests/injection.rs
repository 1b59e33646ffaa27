//! Every system call and every allocation of `discnice run`, of policyd and of `discnice refresh` fails in turn: the
//! command still runs, nothing is lost, nothing stays stopped, and at most a line says what does not hold (ADR 19).
//!
//! Of each call the first and the last time it is made, and with `DISCNICE_INJECT=all`, as in `make inject`, every one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::failing::{Fault, Scene, Scope, Which, give, make_private};
use discnice_tests::faults::{Depth, faults, is_all, shown, try_each};
use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip, together};

/// What a command prints and returns that ran.
const COMMAND: [&str; 3] = ["sh", "-c", "echo out; exit 7"];
const RAN: i32 = 7;
/// Our own error, and a command that cannot be executed.
const OURS: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
/// Lines that calls which fail for good, or one that fails once, may give reason to.
const LINES: usize = 3;
const LINE: usize = 1;

/// So many scenes are played at once: a case mostly waits.
const SCENES: usize = 3;

fn scenes() -> Result<Vec<Scene>, String> {
    (0..SCENES).map(|_| Scene::new()).collect()
}

/// What holds however `discnice` ends: no hang, no signal, nothing but lines of ours.
fn is_orderly(outcome: Option<Outcome>, lines: usize) -> Result<Outcome, String> {
    let Some(outcome) = outcome else { return Err("it hangs".into()) };
    let complaint = outcome.complaint();
    let ours = complaint.lines().all(|line| line.starts_with("discnice: "));
    if outcome.signal.is_some() || !ours || complaint.lines().count() > lines {
        return Err(format!("{outcome:?}"));
    }
    Ok(outcome)
}

/// Nothing stays stopped.
fn leaves_nothing(scene: &Scene) -> Result<(), String> {
    match scene.stopped() {
        stopped if stopped.is_empty() => Ok(()),
        stopped => Err(format!("{stopped:?} stay stopped")),
    }
}

/// There is one daemon, a keeper and its worker: another one that was started looks for a moment whether that one ends.
fn leaves_one_daemon(scene: &Scene) {
    let is_daemon = |process: &u32| {
        let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.contains("\0policyd\0")
    };
    let daemons = || scene.processes().into_iter().filter(is_daemon).count();
    let deadline = Instant::now() + Duration::from_secs(5);
    while daemons() > 2 {
        assert!(Instant::now() < deadline, "{} processes of daemons", daemons());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns true if glibc ended the process: it does so if a new thread has no memory for what it is
/// to do at its end.
fn is_glibcs_end(outcome: Option<&Outcome>) -> bool {
    outcome.is_some_and(|outcome| {
        let complaint = outcome.complaint();
        complaint.starts_with("Fatal glibc error: failed to register TLS destructor")
    })
}

/// A way to run a command.
#[derive(Default)]
struct Way {
    options: &'static [&'static str],
    /// Lines that it prints anyway.
    lines: usize,
    /// Nothing is there when it begins.
    fresh: bool,
    /// It may refuse the command for any reason.
    strict: bool,
}

impl Way {
    fn words(&self) -> Vec<&'static str> {
        [&["run"], self.options, &["--"], &COMMAND].concat()
    }

    /// The command ran as it does bare, or one line says why it was not started.
    fn is_right(&self, fault: &Fault, outcome: &Outcome) -> bool {
        if (outcome.status, &*outcome.text()) == (Some(RAN), "out\n") {
            return true;
        }
        let complaint = outcome.complaint();
        let not_executed = fault.call == libc::SYS_execve
            && outcome.status == Some(NOT_EXECUTABLE)
            && complaint.contains("cannot run sh");
        // Settings that cannot be read may say that a command is not to be started, and below a filter without a
        // supervisor none can be.
        let refused = outcome.status == Some(OURS)
            && complaint.lines().count() == 1
            && (self.strict
                || complaint.contains("config.toml")
                || complaint.contains("the supervisor of its calls was lost"));
        outcome.output.is_empty() && (not_executed || refused)
    }

    fn sweep(&self) {
        let scenes = match scenes() {
            Ok(scenes) => scenes,
            Err(why) => skip!("{why}"),
        };
        let words = self.words();
        for scene in &scenes {
            scene.renew();
            if !self.fresh {
                let _ = scene.run(Scope::Command, None, &words);
            }
            let bare = scene.run(Scope::Command, None, &words).expect("it does not hang");
            assert_eq!((bare.status, &*bare.text()), (Some(RAN), "out\n"), "{bare:?}");
            assert_eq!(bare.complaint().lines().count(), self.lines, "{bare:?}");
        }
        let depth = if self.fresh { Depth::First } else { Depth::Both };
        let case = |scene: &Scene, fault: &Fault| self.case(scene, fault, &words);
        try_each(&scenes, faults(&scenes[0], depth), case).none(&format!("run {:?}", self.options));
        scenes.iter().for_each(leaves_one_daemon);
    }

    fn case(&self, scene: &Scene, fault: &Fault, words: &[&str]) -> Result<(), String> {
        if self.fresh {
            scene.renew();
        }
        let lines = if matches!(fault.which, Which::One(_)) { LINE } else { LINES };
        let outcome = scene.run(Scope::Command, Some(*fault), words);
        if is_glibcs_end(outcome.as_ref()) {
            return Ok(());
        }
        let outcome = is_orderly(outcome, self.lines + lines)?;
        if self.is_right(fault, &outcome) {
            return leaves_nothing(scene);
        }
        Err(format!("{outcome:?}"))
    }
}

#[test]
fn calls_of_run_with_a_limit() {
    Way { options: &["--disk", "50M"], ..Way::default() }.sweep();
}

#[test]
fn calls_of_run_that_finds_nothing() {
    Way { options: &["--class", "failing-test", "--disk", "50M"], fresh: true, ..Way::default() }
        .sweep();
}

#[test]
fn calls_of_run_in_the_polite_default() {
    Way::default().sweep();
}

#[test]
fn calls_of_run_that_sums_up() {
    Way { options: &["--disk", "50M", "--summary"], lines: 1, ..Way::default() }.sweep();
}

#[test]
fn calls_of_run_with_a_filter() {
    Way { options: &["--disk", "50M", "--mechanism", "seccomp"], ..Way::default() }.sweep();
}

#[test]
fn calls_of_run_with_progress() {
    Way { options: &["--polite"], ..Way::default() }.sweep();
}

#[test]
fn calls_of_run_that_is_strict() {
    Way { options: &["--disk", "50M", "--strict"], strict: true, ..Way::default() }.sweep();
}

#[test]
fn allocations_of_run() {
    let scenes = match scenes() {
        Ok(scenes) => scenes,
        Err(why) => skip!("{why}"),
    };
    let ways: [&[&str]; SCENES] = [&["--disk", "50M"], &["--summary"], &["--polite"]];
    let wrong = together::each(&scenes, ways, short_of_memory).concat();
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), shown(&wrong));
    for scene in &scenes {
        leaves_nothing(scene).expect("nothing is left");
    }
}

/// What goes wrong in a way to run a command while one allocation fails, or all from one on.
fn short_of_memory(scene: &Scene, way: &[&str]) -> Vec<String> {
    let words = [&["run"], way, &["--"], &COMMAND].concat();
    let mut wrong = Vec::new();
    for which in [Which::One as fn(u64) -> Which, Which::From] {
        let mut number = 1;
        loop {
            let ran = scene.run_short_of_memory(which(number), &words);
            let Some((outcome, failed)) = ran else {
                wrong.push(format!("{way:?} {:?}: it hangs", which(number)));
                break;
            };
            if !failed {
                assert!(number > 100, "{way:?}: only {number} allocations: {outcome:?}");
                break;
            }
            if let Err(why) = may_end_so(&outcome) {
                wrong.push(format!("{way:?} {:?}: {why}", which(number)));
            }
            number += if is_all() { 1 } else { 7 };
        }
    }
    wrong
}

/// With too little memory the command runs, or, before it is known that it need not be refused, one line says why not.
fn may_end_so(outcome: &Outcome) -> Result<(), String> {
    let outcome = is_orderly(Some(outcome.clone()), LINES)?;
    let ran = (outcome.status, &*outcome.text()) == (Some(RAN), "out\n");
    let told = outcome.complaint().lines().count() == 1;
    let refused = outcome.status == Some(OURS) && outcome.output.is_empty() && told;
    if ran || refused { Ok(()) } else { Err(format!("{outcome:?}")) }
}

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
    try_each(&scenes, faults(&scenes[0], Depth::First), daemon_case).none("policyd");
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
    let refused = [Some(OURS), Some(NOT_EXECUTABLE)].contains(&outcome.status)
        && complaint.lines().count() == 1
        && (fault.call == libc::SYS_execve || complaint.contains("config.toml"));
    if !complaint.contains("panicked") && (outcome.status == Some(0) && whole || refused) {
        return leaves_nothing(scene);
    }
    Err(format!("{outcome:?}"))
}

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

#[test]
fn a_parent_that_ignores_the_end_of_children_gets_the_commands_status() {
    let mut command = product::as_user("env");
    command.arg("--ignore-signal=CHLD").arg(product::program());
    command.args(["run", "--disk", "50M", "--summary", "--"]).args(COMMAND);
    let outcome = run(&mut command);
    assert_eq!((outcome.status, &*outcome.text()), (Some(RAN), "out\n"), "{outcome:?}");
    // The command finds it ignored as well.
    let script = "grep SigIgn /proc/self/status";
    let ignored = |words: &[&str]| {
        let mut command = product::as_user("env");
        command.arg("--ignore-signal=CHLD").args(words).args(["sh", "-c", script]);
        run(&mut command).succeeded().text()
    };
    let program = product::program();
    let under = [program.to_str().expect("text"), "run", "--disk", "50M", "--summary", "--"];
    assert_eq!(ignored(&under), ignored(&[]));
}
