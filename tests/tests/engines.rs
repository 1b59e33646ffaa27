//! The scripts for batch systems and CI runners, called as these call them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use discnice_tests::guest::Compiler;
use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};
use tempfile::TempDir;

/// What writes 8 MiB in less had no limit of 4 MiB/s; a little passes at once.
const LEAST: u64 = 1600;
const SETTINGS: &str = "[class.ci]\ndisk = \"4M\"\n[class.condor]\ndisk = \"4M\"\n";

/// A machine of an engine's: settings, a program that writes, and its folder.
struct Engine {
    folder: TempDir,
    steady: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// One test at a time: their jobs are in the same classes.
static TURN: Mutex<()> = Mutex::new(());

impl Engine {
    /// With a class of jobs in the configuration; `None` without a compiler.
    fn new() -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        remove_classes();
        let folder = product::folder();
        let settings = folder.path().join("discnice");
        fs::create_dir(&settings).unwrap();
        fs::write(settings.join("config.toml"), SETTINGS).unwrap();
        let steady = Compiler::new(folder.path())?.compile("steady.c");
        Some(Self { folder, steady, _turn: turn })
    }

    /// The script of that name, as the engine's user.
    fn script(&self, name: &str) -> Command {
        let mut command = self.by(Path::new("sh"));
        command.arg(script(name));
        command
    }

    fn by(&self, program: &Path) -> Command {
        let mut command = product::as_user(program);
        command.current_dir(self.folder.path());
        let program = product::program();
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        command.env("PATH", path).env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A command of a shell's that writes a file of its own.
    fn work(&self, name: &str) -> String {
        format!("{} {}/{name}", self.steady.display(), self.folder.path().display())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        remove_classes();
    }
}

/// Also those of an earlier run, with other limits.
fn remove_classes() {
    for class in ["ci", "condor", "ci-77"] {
        let _ = run(&mut product::discnice(["class", "rm", "--force", class]));
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/engines").join(name)
}

fn milliseconds(outcome: &Outcome) -> u64 {
    outcome.text().trim().parse().unwrap_or_else(|_| panic!("no number: {outcome:?}"))
}

#[test]
fn a_condor_job_is_held_and_a_wrong_rate_is_told_to_condor() {
    let Some(engine) = Engine::new() else { skip!("no compiler") };
    let work = engine.work("one");
    let job = |ad: &str, words: &[&str]| {
        let ad = engine.write("ad", ad);
        let mut wrapper = engine.script("discnice-condor");
        wrapper
            .env("_CONDOR_JOB_AD", ad)
            .env("_CONDOR_WRAPPER_ERROR_FILE", engine.write("why", ""));
        fs::set_permissions(
            engine.folder.path().join("why"),
            std::os::unix::fs::PermissionsExt::from_mode(0o666),
        )
        .unwrap();
        run(wrapper.args(words))
    };
    let words: Vec<&str> = work.split(' ').collect();
    let held = milliseconds(&job("Cmd = \"x\"\n", &words));
    assert!(held >= LEAST, "{held} ms");
    let free = milliseconds(&job("DiscniceDisk = \"unlimited\"\n", &words));
    assert!(free < LEAST, "{free} ms");
    let ended = job("", &["sh", "-c", "echo \"$1\"; exit 9", "sh", "two words"]);
    assert_eq!((ended.text().as_str(), ended.status), ("two words\n", Some(9)), "{ended:?}");
    let refused = job("DiscniceDisk = \"quick\"\n", &["touch", "started"]);
    assert_eq!(refused.status, Some(1), "{refused:?}");
    let why = fs::read_to_string(engine.folder.path().join("why")).unwrap();
    assert!(
        why.starts_with("discnice: ") && why.contains("quick") && why.lines().count() == 1,
        "{why}"
    );
    assert!(!engine.folder.path().join("started").exists());
}

#[test]
fn a_job_of_gitlab_is_held_in_all_its_stages() {
    let Some(engine) = Engine::new() else { skip!("no compiler") };
    let stage = |script: &str, disk: &str| {
        let script = engine.write("script", script);
        let mut runner = engine.script("discnice-gitlab");
        runner.arg(script).arg("build_script").env("BUILD_FAILURE_EXIT_CODE", "42");
        runner.env("CUSTOM_ENV_DISCNICE_DISK", disk).env("CUSTOM_ENV_CI_JOB_ID", "77");
        run(&mut runner)
    };
    let held = milliseconds(&stage(&engine.work("one"), ""));
    assert!(held >= LEAST, "{held} ms");
    let own = milliseconds(&stage(&engine.work("two"), "3M"));
    assert!(own >= LEAST, "{own} ms");
    assert_eq!(stage("exit 3", "").status, Some(42));
    let refused = stage("touch started", "quick");
    assert_eq!(refused.status, Some(42));
    assert!(
        refused.complaint().contains("quick") && refused.complaint().lines().count() == 1,
        "{refused:?}"
    );
    assert!(!engine.folder.path().join("started").exists());
}

#[test]
fn the_hook_of_github_holds_what_its_worker_starts() {
    let Some(engine) = Engine::new() else { skip!("no compiler") };
    // The worker executes the hook, and then the steps.
    let worker = engine.folder.path().join("Runner.Worker");
    product::copy_program("/bin/bash", &worker);
    let hook = script("discnice-github");
    // A step may have ended before it is noticed: then the worker stands for what it wrote.
    let steps = format!(
        "sh {} || exit 5; begin=$(date +%s%3N); {} >&2; sleep 0.3; echo $(($(date +%s%3N) - begin)); exit 7",
        hook.display(),
        engine.work("one")
    );
    let ended = run(engine.by(&worker).arg("-c").arg(steps));
    assert_eq!(ended.status, Some(7), "{ended:?}");
    let held = milliseconds(&ended);
    assert!(held >= LEAST, "{held} ms");
    let alone = run(&mut engine.script("discnice-github")).succeeded();
    assert!(alone.complaint().contains("no Runner.Worker above"), "{alone:?}");
}
