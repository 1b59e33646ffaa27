//! What one user of the machine can do to another through DiscNice: nothing.
//!
//! Two ordinary users, without accounts, and the superuser. Each test has memory of its own
//! (ipc_namespaces(7)) where it matters.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, Outcome, run};
use discnice_tests::{product, skip};

/// Users that no system has.
const ATTACKER: u32 = 61_001;
const VICTIM: u32 = 61_002;

/// A command as another user, in a session without `XDG_RUNTIME_DIR`, in the IPC namespace of `space`.
fn by(space: &Space, user: u32, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--ipc=/proc/{}/ns/ipc", space.0.id()));
    command.args(["setpriv", "--reuid", &user.to_string(), "--regid", &user.to_string()]);
    command.args(["--clear-groups", "env", "-u", "XDG_RUNTIME_DIR", "HOME=/nonexistent"]);
    command.args(words);
    command
}

fn discnice(space: &Space, user: u32, words: &[&str]) -> Outcome {
    let program = product::program();
    let program = program.to_str().expect("a path of text");
    run(&mut by(space, user, &[&[program], words].concat()))
}

/// One test at a time: they are the same two users.
static TURN: Mutex<()> = Mutex::new(());

/// A process that keeps an IPC namespace.
struct Space(
    Child,
    #[expect(dead_code, reason = "held until the test ends")] MutexGuard<'static, ()>,
);

impl Space {
    fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keeper = Command::new("unshare");
        keeper.args(["-i", "sh", "-c", "echo ready; exec sleep 1000"]).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().expect("unshare(1)");
        let mut line = String::new();
        let output = keeper.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("its line");
        Self(keeper, turn)
    }

    /// Sets a limit of the namespace's.
    fn set(&self, name: &str, value: &str) {
        let mut set = Command::new("nsenter");
        set.arg(format!("--ipc=/proc/{}/ns/ipc", self.0.id()));
        let script = format!("echo {value} > /proc/sys/kernel/{name}");
        run(set.args(["sh", "-c", &script])).succeeded();
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        for user in [ATTACKER, VICTIM] {
            let places = fs::read_dir("/tmp").into_iter().flatten().flatten();
            let name = format!("discnice-{user}");
            for one in places.filter(|one| one.file_name().to_string_lossy().starts_with(&name)) {
                let _ = fs::remove_dir_all(one.path()).or_else(|_| fs::remove_file(one.path()));
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process of a user's that writes a block through to the disk some twenty times a second.
struct Counter(Group, std::path::PathBuf);

impl Counter {
    fn start(space: &Space, user: u32, folder: &Path) -> Self {
        let file = folder.join(format!("count-{user}"));
        let write = "dd if=/dev/zero bs=4k count=1 oflag=append,sync conv=notrunc";
        let script =
            format!("while :; do {write} of={} 2> /dev/null; sleep 0.04; done", file.display());
        let counter = Self(Group::start(&mut by(space, user, &["sh", "-c", &script])), file);
        counter.wait_for(1);
        counter
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn count(&self) -> u64 {
        fs::metadata(&self.1).map_or(0, |file| file.len() / 4096)
    }

    fn wait_for(&self, count: u64) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.count() < count {
            assert!(Instant::now() < deadline, "the counter stands");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Blocks in the next two seconds.
    fn pace(&self) -> u64 {
        let before = self.count();
        std::thread::sleep(Duration::from_secs(2));
        self.count() - before
    }
}

fn plant_program(folder: &Path) -> Option<String> {
    let program = Compiler::new(folder)?.compile("plant.c");
    Some(program.to_str()?.to_owned())
}

/// A class that another user made and gave to the victim: nothing of the victim's joins it, shows it, or is held by it.
fn no_planted_class_is_believed(victim: u32) {
    let folder = product::folder();
    let Some(plant) = plant_program(folder.path()) else { skip!("no compiler") };
    let space = Space::new();
    let (own, other) = (
        Counter::start(&space, ATTACKER, folder.path()),
        Counter::start(&space, victim, folder.path()),
    );
    let attach =
        ["attach", "--background", "--class", "nightly", "--disk", "1K", &own.id().to_string()];
    discnice(&space, ATTACKER, &attach).succeeded();
    let ids = [victim, own.id(), other.id()].map(|id| id.to_string());
    let planted =
        run(&mut by(&space, ATTACKER, &[&plant, &ids[0], "nightly", &ids[1], &ids[2]])).succeeded();
    assert!(planted.text().lines().count() > 1, "{planted:?}");
    let before = other.pace();
    // Whatever is used of the product starts a daemon that looks at all classes.
    let held = discnice(&space, victim, &["run", "--disk", "1G", "--", "true"]);
    assert!(held.status == Some(0) && held.complaint().is_empty(), "{held:?}");
    let after = other.pace();
    assert!(before > 10 && after > before / 2, "{before} blocks before, {after} after");
    let listed = discnice(&space, victim, &["class", "list"]).succeeded();
    assert!(!listed.text().contains("nightly"), "{listed:?}");
    let file = folder.path().join(format!("written-{victim}"));
    let copy = format!("dd if=/dev/zero of={} bs=1M count=8 2>&1", file.display());
    let started = Instant::now();
    let joined = discnice(
        &space,
        victim,
        &["run", "--class", "nightly", "--disk", "1G", "--", "sh", "-c", &copy],
    );
    assert!(
        joined.succeeded().complaint().is_empty() && started.elapsed() < Duration::from_secs(5)
    );
    let shown = discnice(&space, victim, &["class", "show", "nightly", "--json"]).succeeded();
    assert!(shown.text().contains("\"limit_total\": 1073741824"), "{shown:?}");
    discnice(&space, victim, &["class", "rm", "--force", "nightly"]).succeeded();
}

#[test]
fn a_class_that_another_user_planted_is_not_believed() {
    if !product::is_root() {
        skip!("two users need root");
    }
    no_planted_class_is_believed(VICTIM);
}

#[test]
fn nor_by_the_superuser() {
    if !product::is_root() {
        skip!("two users need root");
    }
    no_planted_class_is_believed(0);
}

/// Bytes a second that a copy of 6 MiB by the victim moves within 2 MiB/s.
fn rate_of_limited_copy(space: &Space, folder: &Path) -> f64 {
    let file = folder.join("limited");
    let copy = format!("dd if=/dev/zero of={} bs=64k count=96 2>&1", file.display());
    let started = Instant::now();
    let words = ["run", "--disk", "2M", "--", "sh", "-c", &copy];
    let outcome = discnice(space, VICTIM, &words).succeeded();
    assert!(outcome.complaint().is_empty(), "{outcome:?}");
    f64::from(6 << 20) / started.elapsed().as_secs_f64()
}

#[test]
fn no_user_can_take_all_shared_memory_from_another() {
    if !product::is_root() {
        skip!("two users need root");
    }
    let folder = product::folder();
    let Some(plant) = plant_program(folder.path()) else { skip!("no compiler") };
    let space = Space::new();
    space.set("shmmni", "64");
    let made = run(&mut by(&space, ATTACKER, &[&plant, "exhaust", "100"])).succeeded();
    assert_eq!(made.text().trim(), "64");
    let rate = rate_of_limited_copy(&space, folder.path());
    assert!(rate < 2.6e6, "{rate} B/s");
    let words =
        ["run", "--class", "files", "--disk", "5M", "--", "env", "-i", "sh", "-c", "exec true"];
    discnice(&space, VICTIM, &words).succeeded();
    discnice(&space, VICTIM, &["class", "set", "files", "--disk", "7M"]).succeeded();
    let listed = discnice(&space, VICTIM, &["class", "list"]).succeeded();
    assert!(listed.text().contains("files") && listed.text().contains("7 MiB/s"), "{listed:?}");
    discnice(&space, VICTIM, &["class", "rm", "files"]).succeeded();
    let doctor = discnice(&space, VICTIM, &["doctor"]);
    assert!(doctor.text().contains("classes lie in files"), "{doctor:?}");
}

#[test]
fn a_directory_that_another_user_took_is_gone_around() {
    if !product::is_root() {
        skip!("two users need root");
    }
    let folder = product::folder();
    let space = Space::new();
    let squatted = format!("/tmp/discnice-{VICTIM}");
    run(&mut by(&space, ATTACKER, &["mkdir", "-m", "755", &squatted])).succeeded();
    let rate = rate_of_limited_copy(&space, folder.path());
    assert!(rate < 2.6e6, "{rate} B/s");
    discnice(&space, VICTIM, &["admit", "--min", "1M", "--max", "1M", "--", "true"]).succeeded();
    // The same directory is found again: the daemon's, and the names'.
    let ours: Vec<_> = fs::read_dir("/tmp")
        .expect("/tmp")
        .flatten()
        .filter(|one| one.metadata().is_ok_and(|facts| facts.uid() == VICTIM))
        .filter(|one| one.file_name().to_string_lossy().starts_with("discnice-"))
        .collect();
    assert_eq!(ours.len(), 1, "{ours:?}");
    assert_eq!(ours[0].metadata().expect("facts").permissions().mode() & 0o777, 0o700);
    assert!(fs::read_dir(&squatted).expect("theirs").next().is_none(), "nothing was put there");
}

#[test]
fn the_superuser_in_a_users_environment_leaves_nothing_there() {
    if !product::is_root() {
        skip!("two users need root");
    }
    let (folder, space) = (product::folder(), Space::new());
    let runtime = folder.path().join("runtime");
    run(&mut by(&space, VICTIM, &["mkdir", "-m", "700", runtime.to_str().expect("text")]))
        .succeeded();
    let variable = format!("XDG_RUNTIME_DIR={}", runtime.display());
    let program = product::program();
    let words =
        [&variable, program.to_str().expect("text"), "run", "--class", "mine", "--disk", "1G"];
    let words = [&["env"], &words[..], &["--", "true"]].concat();
    run(&mut by(&space, 0, &words)).succeeded();
    assert!(fs::read_dir(&runtime).expect("readable").next().is_none(), "of the superuser");
    run(&mut by(&space, 0, &[program.to_str().expect("text"), "class", "rm", "mine"])).succeeded();
    let held = run(&mut by(&space, VICTIM, &words)).succeeded();
    assert!(held.complaint().is_empty(), "{held:?}");
    assert_eq!(fs::metadata(runtime.join("discnice")).expect("made").uid(), VICTIM);
    let socket = |one: fs::DirEntry| one.file_name().to_string_lossy().ends_with(".sock");
    let made = fs::read_dir(runtime.join("discnice")).expect("readable").flatten().any(socket);
    assert!(made, "the user's own daemon");
}

#[test]
fn the_superuser_reads_no_settings_of_an_inherited_environment() {
    if !product::is_root() {
        skip!("two users need root");
    }
    let (folder, space) = (product::folder(), Space::new());
    let home = folder.path().join("home");
    let own = |script: &str| run(&mut by(&space, VICTIM, &["sh", "-c", script])).succeeded();
    own(&format!(
        "mkdir -p {0}/.config/discnice && echo wrong > {0}/.config/discnice/config.toml",
        home.display()
    ));
    let variable = format!("HOME={}", home.display());
    let program = product::program();
    let program = program.to_str().expect("text");
    let begin =
        |user| run(&mut by(&space, user, &["env", &variable, program, "run", "--", "true"]));
    assert_eq!(begin(VICTIM).status, Some(125), "its own");
    assert_eq!(begin(0).succeeded().complaint(), "", "another user's");
    let quick = ["env", &variable, program, "calibrate", "--quick", "--dir", "/var/tmp"];
    let measured = run(&mut by(&space, 0, &quick));
    assert!(!home.join(".cache").exists(), "{measured:?}");
}
