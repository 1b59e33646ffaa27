//! A file system that a daemon serves and that hangs: processes with files there lose what depends on these, and no other limit
//! is lost.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, await_child, only_child, run_within, until};
use discnice_tests::served::Served;
use discnice_tests::{cold, product, skip};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// The limit of each class, a second.
const RATE: u64 = 4 * MIB;
/// For how long what is moved is measured, in seconds.
const MEASURED: u64 = 5;
/// As long is measured where ps(1) of the whole machine waits meanwhile, whatever namespace the processes are in.
const MEASURED_SHORTLY: u64 = 2;
/// Size of what members read.
const SIZE: usize = 32 << 20;

const POLICYD: [&str; 3] = ["policyd", "--idle", "60"];

/// policyd of the user that owns the members. One test at a time has one.
struct Daemon {
    process: Group,
    _turn: MutexGuard<'static, ()>,
}

impl Daemon {
    fn start() -> Self {
        Self::start_by(&mut product::discnice(POLICYD))
    }

    fn start_by(command: &mut Command) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // The one before may still be dying, with the lock: its worker waits until its mount is gone.
        for _ in 0..5 {
            let mut process = Group::start(command);
            let id = process.id();
            let mut is_over = || process.try_wait().expect("it is ours").is_some();
            until("policyd watches, or another one does", || only_child(id).is_some() || is_over());
            if only_child(id).is_some() {
                return Self { process, _turn: turn };
            }
        }
        panic!("another policyd does not end");
    }

    /// The process that watches: its only child.
    fn worker(&self) -> u32 {
        await_child(self.process.id())
    }
}

/// A folder with a file system that a daemon serves, guests, and cold files to read.
struct Scene {
    served: Served,
    compiler: Compiler,
    folder: TempDir,
}

impl Scene {
    fn new() -> Result<Self, &'static str> {
        let folder = product::folder();
        let compiler = Compiler::new(folder.path()).ok_or("no compiler")?;
        if compiler.compile_with("endless.c", &["-static"]).is_err() {
            return Err("no static libc");
        }
        fs::create_dir(folder.path().join("far")).expect("the folder is ours");
        let served = Served::on(&folder.path().join("far"), &compiler)?;
        Ok(Self { served, compiler, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cold(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        cold::make(&path, SIZE).expect("a file");
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fs::set_permissions(&path, readable).expect("our file");
        path
    }

    /// A static program that reads a file without end, held from outside.
    fn reader(&self, class: &Class, name: &str) -> Group {
        let mut command = class.run_by("freeze");
        Group::start_silent(command.arg(self.path("endless")).arg(self.cold(name)))
    }

    /// Starts a static guest that is held from outside, and waits until it is ready.
    fn guest(&self, class: &Class, source: &str, arguments: &[PathBuf]) -> Group {
        let program = self.compiler.compile_with(source, &["-static"]).expect("as the other one");
        let mut command = class.run_by("freeze");
        ready(command.arg(program).args(arguments))
    }
}

/// Starts a guest and waits until it is ready.
fn ready(command: &mut Command) -> Group {
    let mut guest = Group::start(command.stdout(Stdio::piped()));
    let mut line = [0; 5];
    std::io::Read::read_exact(guest.stdout.as_mut().expect("piped"), &mut line).expect("ready");
    guest
}

fn class() -> Class {
    Class::new(&RATE.to_string())
}

/// Bytes that a process has moved.
fn moved(process: &Group) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", process.id())).expect("it runs");
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok());
    ["read_bytes: ", "write_bytes: "].iter().filter_map(|name| field(name)).sum()
}

fn held_to_rate(what: &str, moved: u64, seconds: u64) {
    let share = moved as f64 / (RATE * seconds) as f64;
    assert!((0.5..1.3).contains(&share), "{what} has moved {share:.2} of its limit");
}

/// Processes of DiscNice that wait for an answer of a daemon which serves files, but for the one that does so for others.
fn waiting() -> HashSet<u32> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let ids = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
    let read =
        |id: &u32, name| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
    let waits = |id: &u32| {
        // Not asked of others: some files of what waits cannot be read until it goes on.
        let name = read(id, "comm");
        name.starts_with("discnice")
            && name != "discnice-rules\n"
            && read(id, "wchan") == "request_wait_answer"
    };
    ids.filter(waits).collect()
}

/// None waits for a whole second.
fn none_is_stuck() {
    let (until, mut stuck) = (Instant::now() + Duration::from_secs(1), waiting());
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        stuck = stuck.intersection(&waiting()).copied().collect();
    }
    assert!(stuck.is_empty(), "processes {stuck:?} wait for what hangs");
}

/// Two classes keep to their limits, by the same policyd.
fn limits_hold(daemon: &Daemon, seconds: u64, classes: [&[&Group]; 2]) {
    // What was moved before it was noticed is paid for.
    std::thread::sleep(Duration::from_secs(1));
    let worker = daemon.worker();
    let sum = |members: &[&Group]| members.iter().map(|member| moved(member)).sum::<u64>();
    let before = classes.map(sum);
    std::thread::sleep(Duration::from_secs(seconds));
    let after = classes.map(sum);
    none_is_stuck();
    assert_eq!(daemon.worker(), worker, "policyd was killed by its deadline");
    held_to_rate("the class with files there", after[0] - before[0], seconds);
    held_to_rate("another class", after[1] - before[1], seconds);
}

#[test]
fn limits_hold_while_a_file_system_hangs_on_which_members_have_files() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let daemon = Daemon::start();
    let (ours, theirs) = (class(), class());
    // What is written lies beside the folder on which the hanging one is mounted.
    let [read, nameless] = ["far/a", "far/b"].map(|name| scene.path(name));
    let [go, written] = ["go", "written"].map(|name| scene.path(name));
    let files = [read, nameless, go.clone(), written, scene.cold("own")];
    let holder = scene.guest(&ours, "served.c", &files);
    let mate = scene.reader(&ours, "mates");
    let other = scene.reader(&theirs, "others");
    let _hanging = scene.served.hang();
    fs::write(&go, "").expect("a file");
    limits_hold(&daemon, MEASURED, [&[&holder, &mate], &[&other]]);
}

#[test]
fn what_is_written_beside_a_folder_that_hangs_is_written_back() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let daemon = Daemon::start();
    let (ours, theirs) = (class(), class());
    let _hanging = scene.served.hang();
    let mut command = ours.run_by("freeze");
    command.arg(scene.path("endless")).arg(scene.path("written")).arg("paced");
    let writer = Group::start_silent(&mut command);
    let other = scene.reader(&theirs, "others");
    limits_hold(&daemon, MEASURED, [&[&writer], &[&other]]);
}

/// Commands that look at the members of a class end.
fn commands_end(class: &Class, member: &Group) {
    let id = member.id().to_string();
    let class = class.name();
    let commands: [&[&str]; 4] = [
        &["status", "--json"],
        &["class", "show", class, "--json"],
        &["explain", &id],
        &["attach", "--class", class, &id],
    ];
    let hangs = |words: &&&[&str]| {
        let mut command = product::discnice(words.iter());
        run_within(&mut command, Duration::from_secs(2)).is_none()
    };
    let hanging: Vec<_> = commands.iter().filter(hangs).collect();
    assert!(hanging.is_empty(), "these hang: {hanging:?}");
}

#[test]
fn limits_hold_while_a_process_that_executes_a_program_closes_a_file_that_hangs() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let daemon = Daemon::start();
    let (ours, theirs) = (class(), class());
    let go = scene.path("go");
    let files = [scene.path("far/a"), go.clone(), "/bin/sleep".into(), "0".into()];
    let member = scene.guest(&ours, "executing.c", &files);
    let mate = scene.reader(&ours, "mates");
    let other = scene.reader(&theirs, "others");
    let _stranger = ready(product::as_user(scene.path("executing")).args(&files));
    let _hanging = scene.served.hang();
    fs::write(&go, "").expect("a file");
    limits_hold(&daemon, MEASURED_SHORTLY, [&[&mate], &[&other]]);
    commands_end(&ours, &member);
}

#[test]
fn limits_hold_while_a_paused_process_waits_for_a_program_on_a_file_system_that_hangs() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let daemon = Daemon::start();
    let (ours, theirs) = (class(), class());
    let [go, script] = ["go", "script"].map(|name| scene.path(name));
    fs::write(&script, format!("#!{}\n", scene.path("far/a").display())).expect("a file");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("our file");
    let _member =
        scene.guest(&ours, "executing.c", &["/dev/null".into(), go.clone(), script, "0".into()]);
    let other = scene.reader(&theirs, "others");
    let _hanging = scene.served.hang();
    fs::write(&go, "").expect("a file");
    std::thread::sleep(Duration::from_millis(200));
    let mut pause = product::discnice(["pause", ours.name()]);
    assert!(run_within(&mut pause, Duration::from_secs(5)).is_some(), "to pause it hangs");
    let worker = daemon.worker();
    let before = moved(&other);
    std::thread::sleep(Duration::from_secs(MEASURED_SHORTLY));
    let after = moved(&other);
    assert_eq!(daemon.worker(), worker, "policyd was killed by its deadline");
    held_to_rate("another class", after - before, MEASURED_SHORTLY);
}

/// So many children execute a program that some do so at the very moment at which policyd looks at them.
#[test]
fn policyd_goes_on_though_it_looked_at_a_process_that_just_began_to_close_a_file_that_hangs() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let _daemon = Daemon::start();
    let (ours, theirs) = (class(), class());
    let go = scene.path("go");
    let files = [scene.path("far/a"), go.clone(), "/bin/sleep".into(), "300".into()];
    let _parent = scene.guest(&ours, "executing.c", &files);
    let _hanging = scene.served.hang();
    fs::write(&go, "").expect("a file");
    std::thread::sleep(Duration::from_millis(1500));
    let other = scene.reader(&theirs, "others");
    std::thread::sleep(Duration::from_millis(500));
    let before = moved(&other);
    std::thread::sleep(Duration::from_secs(MEASURED_SHORTLY));
    held_to_rate("a class that began meanwhile", moved(&other) - before, MEASURED_SHORTLY);
}

#[test]
fn a_supervised_job_goes_on_while_a_process_of_it_closes_a_file_that_hangs() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let class = class();
    let go = scene.path("go");
    let executing = scene.compiler.compile("executing.c");
    let mut command = class.run_by("seccomp");
    command.args(["sh", "-c", "\"$0\" \"$1\" \"$2\" /bin/sleep 0 & exec \"$3\" \"$4\""]);
    command.args([&executing, &scene.path("far/a"), &go]);
    let reader = ready(command.args([scene.path("endless"), scene.cold("data")]));
    let _hanging = scene.served.hang();
    fs::write(&go, "").expect("a file");
    // The supervisor looks for killed threads once a second.
    std::thread::sleep(Duration::from_millis(1500));
    let before = moved(&reader);
    std::thread::sleep(Duration::from_secs(MEASURED_SHORTLY));
    held_to_rate("the job's reader", moved(&reader) - before, MEASURED_SHORTLY);
}

#[test]
fn limits_hold_while_the_file_system_hangs_on_which_the_configuration_is() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(lacking) => skip!("{lacking}"),
    };
    let home = scene.path("far");
    let daemon = Daemon::start_by(product::discnice(POLICYD).env("XDG_CONFIG_HOME", &home));
    let (ours, theirs) = (class(), class());
    let _hanging = scene.served.hang();
    let readers = [scene.reader(&ours, "ours"), scene.reader(&theirs, "theirs")];
    // It looks for changes of the configuration every other second.
    std::thread::sleep(Duration::from_secs(2));
    limits_hold(&daemon, MEASURED, [&[&readers[0]], &[&readers[1]]]);
}
