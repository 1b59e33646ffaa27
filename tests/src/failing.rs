//! The product while system calls or allocations of it fail.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::guest::Compiler;
use crate::process::{self, Outcome, send};
use crate::{product, segment};

/// Nothing here takes so long unless it hangs: what starts policyd waits up to 5 s until it is there, and as long for its answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The class that its commands use.
pub const CLASS: &str = "failing-test";

/// Which calls of the program fail.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// The one of this number, counted from 1.
    One(u64),
    /// All from this one on.
    From(u64),
}

impl Which {
    fn number(self) -> String {
        match self {
            Self::One(number) => number.to_string(),
            Self::From(number) => format!("-{number}"),
        }
    }
}

/// A system call that fails.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Its number.
    pub call: i64,
    /// Which of them.
    pub which: Which,
    /// What is said of it.
    pub errno: i32,
}

/// How far the program is followed.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// Until it, or what it forks, executes anything.
    Command,
    /// Into the daemon, too, which is the same program.
    Program,
}

/// A folder of a test's own, with its own runtime directory, and the programs that make calls fail.
#[derive(Debug)]
pub struct Scene {
    folder: tempfile::TempDir,
    failing: PathBuf,
    allocations: PathBuf,
}

impl Scene {
    /// Makes one; says why if that is not possible here.
    ///
    /// # Errors
    /// What is missing.
    pub fn new() -> Result<Self, String> {
        let folder = product::folder();
        let compiler = Compiler::new(folder.path()).ok_or("no compiler")?;
        let failing = compiler.compile_with("failing.c", &[]);
        let allocations = compiler.compile_with("allocations.c", &["-shared", "-fPIC"]);
        let none = |_| "calls are made to fail on x86-64 with glibc only";
        let (failing, allocations) = (failing.map_err(none)?, allocations.map_err(none)?);
        let scene = Self { folder, failing, allocations };
        scene.renew();
        Ok(scene)
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Ends all of the product that runs in it, and makes the runtime directory anew.
    ///
    /// # Panics
    /// Something does not end.
    pub fn renew(&self) {
        self.kill_all();
        segments(&self.runtime()).into_iter().for_each(segment::remove);
        let _ = fs::remove_dir_all(self.runtime());
        make_private(&self.runtime());
    }

    /// Ends all of the product that runs in it.
    ///
    /// # Panics
    /// Something does not end.
    pub fn kill_all(&self) {
        for _ in 0..500 {
            let all = self.processes();
            if all.is_empty() {
                return;
            }
            all.into_iter().for_each(|process| send(process.cast_signed(), libc::SIGKILL));
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("{:?} do not end", self.processes());
    }

    /// The runtime directory.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.path("run")
    }

    fn counts(&self) -> PathBuf {
        self.runtime().join("counts")
    }

    /// What `discnice` with these words is started with.
    fn surroundings<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.runtime()).env("HOME", self.runtime().join("home"))
    }

    /// Runs `discnice` with these words while that call fails; `None` if it hangs.
    #[must_use]
    pub fn run(&self, scope: Scope, fault: Option<Fault>, words: &[&str]) -> Option<Outcome> {
        let (call, which, errno) =
            fault.map_or((-1, Which::One(0), 0), |fault| (fault.call, fault.which, fault.errno));
        let scope = match scope {
            Scope::Command => "command",
            Scope::Program => "program",
        };
        let mut command = product::as_user(&self.failing);
        command.arg(self.counts()).args([scope, &call.to_string(), &which.number()]);
        command.arg(errno.to_string()).arg(product::program()).args(words);
        process::run_within(self.surroundings(&mut command), TIMEOUT)
    }

    /// Runs `discnice` with these words; `None` if it hangs.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Option<Outcome> {
        self.command_with(words, &[])
    }

    /// Runs a command with these variables in the environment.
    #[must_use]
    pub fn command_with(&self, words: &[&str], variables: &[(&str, &OsStr)]) -> Option<Outcome> {
        let mut command = product::discnice(words);
        self.surroundings(&mut command).envs(variables.iter().copied());
        process::run_within(&mut command, TIMEOUT)
    }

    /// Finds a path in the runtime directory by this pattern, in which one `*` stands for anything.
    #[must_use]
    pub fn find(&self, pattern: &str) -> Option<PathBuf> {
        let pattern = self.runtime().join(pattern);
        let name = pattern.file_name()?.to_str()?;
        let Some((head, tail)) = name.split_once('*') else {
            return fs::symlink_metadata(&pattern).is_ok().then_some(pattern);
        };
        let mut entries = fs::read_dir(pattern.parent()?).ok()?.flatten().map(|entry| entry.path());
        entries.find(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(head) && name.ends_with(tail)
        })
    }

    /// Keeps the runtime directory as it is as soon as all of these are in it, for [`Scene::renew_from_template`].
    ///
    /// # Panics
    /// Something does not come to be.
    pub fn keep_as_template(&self, patterns: &[&str]) {
        for pattern in patterns {
            let deadline = Instant::now() + TIMEOUT;
            while self.find(pattern).is_none() {
                assert!(Instant::now() < deadline, "no {pattern}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.kill_all();
        self.copy(&self.runtime(), &self.path("template"));
    }

    /// Makes the runtime directory again what it was.
    pub fn renew_from_template(&self) {
        self.kill_all();
        let (now, kept) = (segments(&self.runtime()), segments(&self.path("template")));
        now.difference(&kept).copied().for_each(segment::remove);
        // The copy of the library lies in a folder that an ordinary user must make writable first, and some are unreadable.
        let runtime = self.runtime();
        let _ = process::run(Command::new("chmod").arg("-R").arg("u+rwX").arg(&runtime));
        let _ = fs::remove_dir_all(&runtime);
        assert!(!runtime.exists(), "what is left would be mixed with the template");
        self.copy(&self.path("template"), &runtime);
    }

    fn copy(&self, from: &Path, to: &Path) {
        let copied = process::run(Command::new("cp").arg("-a").arg(from).arg(to));
        assert_eq!(copied.status, Some(0), "{copied:?}");
    }

    /// How often the last run made each call.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<i64, u64> {
        let text = fs::read_to_string(self.counts()).unwrap_or_default();
        let parse = |line: &str| {
            let (call, times) = line.split_once(' ')?;
            Some((call.parse().ok()?, times.parse().ok()?))
        };
        text.lines().filter_map(parse).collect()
    }

    /// Runs `discnice` with these words while that allocation fails; false if there are not so many, `None` if it
    /// hangs.
    #[must_use]
    pub fn run_short_of_memory(&self, which: Which, words: &[&str]) -> Option<(Outcome, bool)> {
        let failed = self.runtime().join("failed");
        let _ = fs::remove_file(&failed);
        let mut command = product::as_user("env");
        let preload = format!("LD_PRELOAD={}", self.allocations.display());
        command.arg(preload).arg(product::program()).args(words);
        self.surroundings(&mut command).env("FAIL_PROGRAM", "discnice");
        command.env("FAIL_AT", which.number()).env("FAIL_FILE", &failed);
        let outcome = process::run_within(&mut command, TIMEOUT)?;
        Some((outcome, failed.exists()))
    }

    /// The processes that were started in it.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        process::with_in_environment(&format!("XDG_RUNTIME_DIR={}", self.runtime().display()))
    }

    /// Those of them that are stopped, also a little later: one that is held stops now and then.
    #[must_use]
    pub fn stopped(&self) -> Vec<u32> {
        let look = || self.processes().into_iter().filter(|process| is_stopped(*process));
        let first: Vec<u32> = look().collect();
        if first.is_empty() {
            return first;
        }
        std::thread::sleep(Duration::from_secs(1));
        look().filter(|process| first.contains(process)).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.kill_all();
        for folder in [self.runtime(), self.path("template")] {
            segments(&folder).into_iter().for_each(segment::remove);
        }
        // Those that were made without an entry.
        while self
            .command(&["class", "rm", "--force", CLASS])
            .is_some_and(|out| out.status == Some(0))
        {}
    }
}

/// The segments that entries in a runtime directory lead to. The system has few thousand, which many such directories of
/// a test would use up.
fn segments(runtime: &Path) -> BTreeSet<i32> {
    let below =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|one| one.path());
    // Where the usual name is taken, a directory with another one is made beside it.
    let private = below(runtime).filter(|path| path.to_string_lossy().contains("/discnice"));
    let entries = private.flat_map(|path| below(&path.join("classes")));
    let number = |path: PathBuf| {
        // A test may have put anything in its place.
        let is_entry =
            fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() < 1 << 16);
        let text = is_entry.then(|| fs::read(&path).ok())??;
        let entry: serde_json::Value = serde_json::from_slice(&text).ok()?;
        i32::from_str_radix(entry["block"].as_str()?, 16).ok()
    };
    entries.filter_map(number).collect()
}

fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// A directory of the ordinary user's, closed to others.
///
/// # Panics
/// It cannot be made.
pub fn make_private(path: &Path) {
    fs::create_dir(path).expect("the folder is ours");
    fs::set_permissions(path, Permissions::from_mode(0o700)).expect("the folder is ours");
    give(path);
}

/// Gives a file to the ordinary user.
///
/// # Panics
/// It is not there.
pub fn give(path: &Path) {
    if product::is_root() {
        let user = product::NOBODY.parse().ok();
        chown(path, user, user).expect("the superuser may");
    }
}
