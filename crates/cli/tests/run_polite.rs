//! `discnice run --polite`: the command is the command, and its regulator does not show.

mod polite_support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_progress::model::superintendent::DeclaredResources;
use discnice_progress::testpoint::arbiter::Seat;
use discnice_requirements::skip;
use discnice_sys::procfs;
use discnice_units::Nanos;
use polite_support::{Killed, Scene, environment, polite, said, soon, text, told};

fn regulator_of(scene: &Path, job: &Child) -> u32 {
    let regulator = soon("nobody regulates", || told(scene, job.id())?["regulator"].as_u64());
    u32::try_from(regulator).unwrap()
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
    assert!(sent.success(), "{name} {process}");
}

fn is_stopped(process: u32) -> bool {
    procfs::stat(process).is_some_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// Has the turn of all polite jobs of the scene, for the ten seconds after which it is taken for
/// hung: long enough for one job on a machine in use, not for several one after the other.
fn hog(scene: &Path) -> Seat {
    fs::create_dir_all(scene.join("discnice")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(scene.join("discnice"), private).unwrap();
    let seats = scene.join("discnice/seats");
    let mut options = fs::File::options();
    let seats = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(seats);
    let seat =
        Seat::take(seats.unwrap(), 100.0, DeclaredResources::ALL, Nanos::from_millis(10_000))
            .unwrap();
    seat.turn(|| std::ops::ControlFlow::Continue(()));
    seat
}

//= ms-manners/4-designate
#[test]
fn the_command_keeps_its_process_its_parent_and_its_descriptors() {
    let scene = Scene::new();
    let script = "echo $$ $PPID; ls /proc/$$/fd; wc -w < /proc/$$/task/$$/children; pwd; cat";
    let plain = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
    let mut child = polite(scene.path(), &["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let begun = Instant::now();
    child.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    // The regulator holds no end of the pipe, so its reader is done with the command.
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(child.wait().unwrap().success());
    let (ids, rest) = seen.split_once('\n').unwrap();
    assert_eq!(ids, format!("{} {}", child.id(), std::process::id()));
    let plain = text(&plain);
    assert_eq!(rest, plain.split_once('\n').unwrap().1);
}

#[test]
fn exit_statuses_signals_and_failures_are_the_commands() {
    let scene = Scene::new();
    let status = |words: &[&str]| polite(scene.path(), words).stderr(Stdio::null()).status();
    assert_eq!(status(&["--", "sh", "-c", "exit 7"]).unwrap().code(), Some(7));
    assert_eq!(status(&["--", "/nowhere/at/all"]).unwrap().code(), Some(127));
    assert_eq!(status(&["--", "/etc/passwd"]).unwrap().code(), Some(126));
    assert_eq!(status(&["--metric", "speed", "--", "true"]).unwrap().code(), Some(125));
    let killed = status(&["--", "sh", "-c", "kill -TERM $$"]).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed), Some(15));
    // The regulator's own birth leaves no signal waiting for the command.
    let mut command = Command::new("env");
    command.args(["--block-signal=CHLD", env!("CARGO_BIN_EXE_discnice"), "run", "--polite", "--"]);
    command.args(["grep", "-E", "S(ig|hd)Pnd", "/proc/self/status"]);
    let waiting = text(&environment(&mut command, scene.path()).output().unwrap());
    let waiting: Vec<&str> = waiting.split_whitespace().collect();
    assert_eq!(waiting, ["SigPnd:", "0000000000000000", "ShdPnd:", "0000000000000000"]);
}

#[test]
fn the_regulator_survives_the_terminal_and_ends_with_the_job() {
    let scene = Scene::new();
    let mut job = polite(scene.path(), &["--", "sleep", "100"]).spawn().unwrap();
    let regulator = regulator_of(scene.path(), &job);
    let found = procfs::stat(regulator).unwrap();
    assert_ne!(found.parent, job.id());
    for name in ["-INT", "-HUP", "-QUIT"] {
        signal(name, regulator);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(procfs::stat(regulator).is_some_and(|now| now.started == found.started));
    let open = fs::read_dir(format!("/proc/{regulator}/fd")).unwrap();
    let open: Vec<_> = open.map(|entry| fs::read_link(entry.unwrap().path()).unwrap()).collect();
    assert!(!open.iter().any(|file| file.starts_with("/dev/pts")), "{open:?}");
    job.kill().unwrap();
    job.wait().unwrap();
    let gone = || procfs::stat(regulator).is_none().then_some(());
    // It looks every 5 s at least.
    std::thread::sleep(Duration::from_secs(4));
    soon("the regulator outlives its job", gone);
    assert!(told(scene.path(), job.id()).is_none());
}

#[test]
fn a_stopped_job_ends_when_asked_to() {
    for name in ["-TERM", "-INT", "-KILL"] {
        let scene = Scene::new();
        let _turn = hog(scene.path());
        // A shell starts what it leaves in the background with SIGINT ignored, and that is inherited.
        let mut job = Command::new("env");
        job.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_discnice"));
        job.args(["run", "--polite", "--", "sh", "-c", "while :; do :; done"]);
        let mut job = environment(&mut job, scene.path()).spawn().unwrap();
        soon("it has its turn", || is_stopped(job.id()).then_some(()));
        let sent = Instant::now();
        signal(name, job.id());
        job.wait().unwrap();
        assert!(sent.elapsed() < Duration::from_secs(1), "{name} took {:?}", sent.elapsed());
    }
}

//= ms-manners/3-priority-inversion
#[test]
fn a_job_that_holds_what_others_wait_for_goes_on() {
    let scene = Scene::new();
    let lock = scene.path().join("lock");
    fs::write(&lock, "").unwrap();
    let _turn = hog(scene.path());
    // Gives its lock up once the file is there: a job that is stopped never sees it.
    let script =
        "flock 9; while ! [ -e \"$0.asked\" ]; do :; done; flock -u 9; while :; do :; done";
    let mut job = polite(scene.path(), &["--", "bash", "-c", &format!("exec 9<\"$0\"; {script}")]);
    let job = job.arg(&lock).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let job = Killed(job);
    soon("it has its turn", || is_stopped(job.0.id()).then_some(()));
    let mut other = Command::new("flock");
    let other = other.arg(&lock).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    let mut other = Killed(other.spawn().unwrap());
    soon("what holds a lock stays stopped", || (!is_stopped(job.0.id())).then_some(()));
    fs::write(scene.path().join("lock.asked"), "").unwrap();
    soon("no lock was given up", || other.0.try_wait().unwrap());
    let let_on = told(scene.path(), job.0.id()).unwrap()["let_on"].as_u64();
    assert!(let_on.is_some_and(|times| times > 0), "{let_on:?}");
    let shown = text(&said(scene.path(), &["status"]));
    assert!(shown.contains("as others waited for its locks"), "{shown}");
}

#[test]
fn a_regulator_does_not_wait_for_the_dead() {
    let scene = Scene::new();
    let _turn = hog(scene.path());
    let mut job = polite(scene.path(), &["--", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
    let regulator = regulator_of(scene.path(), &job);
    soon("it has its turn", || is_stopped(job.id()).then_some(()));
    job.kill().unwrap();
    job.wait().unwrap();
    soon("the regulator waits", || procfs::stat(regulator).is_none().then_some(()));
}

#[test]
fn a_killed_regulator_leaves_nothing_stopped() {
    for _ in 0..3 {
        let scene = Scene::new();
        let _turn = hog(scene.path());
        let mut job =
            polite(scene.path(), &["--", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
        let regulator = regulator_of(scene.path(), &job);
        soon("it has its turn", || is_stopped(job.id()).then_some(()));
        signal("-KILL", regulator);
        soon("left stopped", || (!is_stopped(job.id())).then_some(()));
        job.kill().unwrap();
        job.wait().unwrap();
    }
}

#[test]
fn limits_and_manners_together() {
    let scene = Scene::new();
    // The library is built in release mode only.
    let program = Path::new(env!("CARGO_BIN_EXE_discnice")).parent().and_then(Path::parent);
    let program = program.expect("a build folder").join("release/discnice");
    if !program.with_file_name("libdiscnice.so").exists() {
        skip!("{} and its library have not been built", program.display());
    }
    let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
    let start = |count: &str| {
        let to = format!("of={}/file", scratch.path().display());
        let mut job = Command::new(&program);
        job.args(["run", "--polite", "--no-probation", "--disk", "2M", "--", "dd"]);
        job.args(["if=/dev/zero", &to, "bs=64k", count]).stderr(Stdio::null());
        environment(&mut job, scene.path()).spawn().unwrap()
    };
    // What the programs read to start, where other tests have driven it out of the page cache, is charged, too.
    assert!(start("count=0").wait().unwrap().success());
    let begun = Instant::now();
    let mut job = start("count=96");
    let report = soon("nobody regulates", || told(scene.path(), job.id()));
    assert_eq!(report["name"], "dd");
    let (mut aside, mut looked, mut last) = (0.0, Instant::now(), report);
    while job.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(50));
        last = told(scene.path(), job.id()).unwrap_or(last);
        let passed = looked.elapsed().as_secs_f64();
        looked = Instant::now();
        aside += if last["suspended"] == true { passed } else { 0.0 };
    }
    assert!(job.wait().unwrap().success());
    // 6 MiB at 2 MiB/s; without manners it takes as long, but for the time in which it stands aside for the
    // other tests.
    let took = begun.elapsed().as_secs_f64() - aside;
    assert!((2.4..6.0).contains(&took), "{took}, and {aside} aside: {last:#}");
}
