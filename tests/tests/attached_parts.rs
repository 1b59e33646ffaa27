//! `attach --class`: running processes become a part of a class, stand for a condition, and are let go.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use discnice_tests::attaching::until_executes;
use discnice_tests::class::Class;
use discnice_tests::process::{Group, send, until, wait};
use discnice_tests::product;
use tempfile::TempDir;

/// What does not stand has written meanwhile.
const LONG: Duration = Duration::from_millis(300);
const COUNTS: &str = "while :; do echo >>log; sleep 0.02; done";

/// A shell in a folder of its own.
struct Shell {
    group: Group,
    folder: TempDir,
}

impl Shell {
    fn start(script: &str) -> Self {
        let folder = product::folder();
        let mut command = product::as_user("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let group = Group::start_silent(&mut command);
        until_executes(&group, "sh");
        Self { group, folder }
    }

    fn id(&self) -> String {
        self.group.id().to_string()
    }

    fn written(&self) -> u64 {
        fs::metadata(self.folder.path().join("log")).map_or(0, |log| log.len())
    }

    fn must_stand(&self) {
        until("it stands", || {
            let before = self.written();
            std::thread::sleep(LONG);
            self.written() == before
        });
    }

    fn must_go_on(&self) {
        let before = self.written();
        until("it goes on", || self.written() > before + 3);
    }
}

/// `attach` that goes on to run.
struct Attach {
    group: Group,
    folder: TempDir,
}

impl Attach {
    fn start(class: &Class, options: &[&str], shells: &[&Shell]) -> Self {
        let folder = product::folder();
        let mut command: Command = product::discnice(["attach", "--class", class.name()]);
        command.args(options).args(shells.iter().map(|shell| shell.id()));
        let file = |name| File::create(folder.path().join(name)).expect("a file");
        command.stdout(file("output")).stderr(file("errors"));
        Self { group: Group::start(&mut command), folder }
    }

    fn told(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("a file")
    }

    fn interrupt(&mut self) {
        send(self.group.id().cast_signed(), libc::SIGINT);
        assert!(wait(&mut self.group, &"attach").success(), "{}", self.told("errors"));
    }

    /// Rates are shown from then on.
    fn until_begun(&self) {
        until("it begins", || self.told("output").contains("reading"));
    }

    fn until_waiting(&self) {
        until("it waits", || self.told("errors").contains("the job waits for"));
    }
}

#[test]
fn one_goes_on_after_another_has_ended() {
    let (class, switch) = (Class::new("unlimited"), product::folder());
    let go: PathBuf = switch.path().join("go");
    let (mut one, other) = (Shell::start(COUNTS), Shell::start(COUNTS));
    one.must_go_on();
    other.must_go_on();
    let condition = format!("cmd:test -e {}", go.display());
    let mut attach = Attach::start(&class, &["--only-when", &condition], &[&one, &other]);
    attach.until_waiting();
    one.must_stand();
    other.must_stand();
    one.group.kill().expect("it is there");
    wait(&mut one.group, &"a killed shell");
    fs::write(&go, "").expect("a file");
    other.must_go_on();
    attach.interrupt();
}

#[test]
fn descendants_are_released_too() {
    let class = Class::new("50M");
    let other = Shell::start("sleep 100");
    let shell = Shell::start("sleep 100 & wait");
    let members = || class.show()["members"].as_array().expect("an array").len();
    let mut of_other = Attach::start(&class, &["--disk", "50M"], &[&other]);
    of_other.until_begun();
    let before = members();
    let mut attach = Attach::start(&class, &[], &[&shell]);
    attach.until_begun();
    assert_eq!(members(), before + 2, "{}", class.show());
    attach.interrupt();
    assert_eq!(members(), before, "{}", class.show());
    of_other.interrupt();
    assert_eq!(members(), 0, "{}", class.show());
}

#[test]
fn descendants_that_stand_go_on() {
    let class = Class::new("unlimited");
    let shell = Shell::start(&format!("({COUNTS}) & wait"));
    shell.must_go_on();
    let mut attach = Attach::start(&class, &["--only-when", "cmd:false"], &[&shell]);
    attach.until_waiting();
    shell.must_stand();
    attach.interrupt();
    shell.must_go_on();
    let shown = class.show();
    assert_eq!(shown["members"], serde_json::json!([]), "{shown}");
}
