//! Every system call and every allocation of `discnice run` fails in turn: the command still runs, nothing stays
//! stopped, and at most a line says what does not hold (ADR 19).
//!
//! Of each call the first and the last time it is made, and with `DISCNICE_INJECT=all`, as in `make inject`, every one.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::failing::{Fault, Scene, Scope, Which};
use discnice_tests::faults::{
    Depth, NOT_EXECUTABLE, OURS, faults, is_all, is_orderly, leaves_nothing, scenes, shown,
    try_each,
};
use discnice_tests::process::Outcome;
use discnice_tests::{skip, together};

/// What a command prints and returns that ran.
const COMMAND: [&str; 3] = ["sh", "-c", "echo out; exit 7"];
const RAN: i32 = 7;
/// Lines that calls which fail for good, or one that fails once, may give reason to.
const LINES: usize = 3;
const LINE: usize = 1;

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
    let ways: [&[&str]; 3] = [&["--disk", "50M"], &["--summary"], &["--polite"]];
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
