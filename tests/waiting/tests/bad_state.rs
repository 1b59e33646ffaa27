//! Each file, directory and socket of ours in each state in which it must not be: one clear line or nothing to say,
//! the command runs, and nothing hangs, crashes, is deleted or stays stopped.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::failing::{Scene, give, make_private};
use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip, together};

/// Our own error.
const OURS: i32 = 125;
/// What stands in a file that something of ours may lead to.
const PRECIOUS: &str = "not to be touched\n";
/// A user that nothing here belongs to.
const STRANGER: u32 = 54_321;
const HUGE: u64 = 4 << 30;

/// What a command prints that ran, one that is regulated by its progress for long enough to be so.
const ECHO: [&str; 4] = ["--", "sh", "-c", "echo out; exit 7"];
const LONGER: [&str; 4] = ["--", "sh", "-c", "sleep 0.2; echo out; exit 7"];
const RUN: &[&str] = &["run", "--class", "failing-test", "--disk", "50M"];
const POLITE: &[&str] = &["run"];
const PROGRESS: &[&str] = &["run", "--polite"];
const STATIC: &[&str] = &["run", "--disk", "50M", "--mechanism", "freeze"];
const ADMIT: &[&str] = &["admit", "--min", "1M", "--max", "2M"];
const LIST: &[&str] = &["class", "list"];
const SHOW: &[&str] = &["class", "show", "failing-test"];
const SET: &[&str] = &["class", "set", "failing-test", "--disk", "40M"];
const STATUS: &[&str] = &["status"];

/// Something of ours, by its path below the runtime directory; `*` stands for what differs.
struct Place {
    path: &'static str,
    /// What uses it.
    commands: &'static [&'static [&'static str]],
    /// It may keep a command from being started, as it may say that it is not to be.
    refuses: bool,
    /// Another file may be put in its place by design: it says nothing that would be lost. What could be of use to a
    /// person is set aside, under a name that begins with its own.
    replaced: bool,
}

const fn place(path: &'static str, commands: &'static [&'static [&'static str]]) -> Place {
    Place { path, commands, refuses: false, replaced: false }
}

const PLACES: &[Place] = &[
    place("discnice", &[RUN, PROGRESS, ADMIT, LIST, STATUS]),
    place("discnice/classes", &[RUN, SHOW, SET, LIST]),
    Place { replaced: true, ..place("discnice/classes/failing-test", &[RUN, SHOW, SET, LIST]) },
    Place { replaced: true, ..place("discnice/classes/@board*", &[RUN, POLITE, STATUS]) },
    place("discnice/library", &[RUN]),
    Place { replaced: true, ..place("discnice/library/*libdiscnice.so", &[RUN]) },
    place("discnice/policyd*lock", &[RUN, STATIC]),
    Place { replaced: true, ..place("discnice/policyd*sock", &[RUN, STATIC]) },
    Place { refuses: true, ..place("discnice/memory-grants", &[ADMIT]) },
    place("discnice/seats", &[PROGRESS, STATUS]),
    place("discnice/polite", &[PROGRESS, STATUS]),
    Place { refuses: true, ..place("home/.config/discnice", &[RUN, POLITE]) },
    Place { refuses: true, ..place("home/.config/discnice/config.toml", &[RUN, POLITE]) },
    place("home/.cache/discnice", &[POLITE]),
    place("home/.cache/discnice/profile.toml", &[POLITE]),
    place("home/.local/state/discnice/targets", &[PROGRESS]),
    Place { replaced: true, ..place("home/.local/state/discnice/targets/*.targets", &[PROGRESS]) },
];

/// How it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Empty,
    Truncated,
    Garbage,
    OtherVersion,
    Strangers,
    Link,
    Dangling,
    Fifo,
    Directory,
    Socket,
    ReadOnly,
    Closed,
    Open,
    Huge,
}

const STATES: [State; 15] = [
    State::Missing,
    State::Empty,
    State::Truncated,
    State::Garbage,
    State::OtherVersion,
    State::Strangers,
    State::Link,
    State::Dangling,
    State::Fifo,
    State::Directory,
    State::Socket,
    State::ReadOnly,
    State::Closed,
    State::Open,
    State::Huge,
];

impl State {
    /// Brings what is at `path` into this state; false if that is not possible.
    fn bring(self, path: &Path, precious: &Path) -> bool {
        let good = fs::symlink_metadata(path).ok();
        let is_directory = good.as_ref().is_some_and(fs::Metadata::is_dir);
        let contents = || fs::read(path).unwrap_or_default();
        let set = |mode| fs::set_permissions(path, Permissions::from_mode(mode)).is_ok();
        match self {
            Self::ReadOnly => return set(if is_directory { 0o500 } else { 0o400 }),
            Self::Closed => return set(0),
            Self::Open => return set(0o777),
            Self::Strangers if !product::is_root() => return false,
            Self::Strangers => {
                return std::os::unix::fs::chown(path, Some(STRANGER), Some(STRANGER)).is_ok();
            }
            _ => {}
        }
        let before = if is_directory { Vec::new() } else { contents() };
        remove(path);
        let write = |bytes: &[u8]| fs::write(path, bytes).is_ok();
        let made = match self {
            Self::Missing => return true,
            Self::Empty => write(b""),
            Self::Truncated => write(before.get(..before.len() / 2).unwrap_or_default()),
            Self::Garbage => write(&[0xff; 5000]),
            Self::OtherVersion => write(&other_version(&before)),
            Self::Link => symlink(precious, path).is_ok(),
            Self::Dangling => symlink("/nowhere/at/all", path).is_ok(),
            Self::Fifo => run(Command::new("mkfifo").arg(path)).status == Some(0),
            Self::Directory => {
                make_private(path);
                fs::write(path.join("precious"), PRECIOUS).is_ok()
            }
            Self::Socket => UnixListener::bind(path).is_ok(),
            Self::Huge => File::create(path).and_then(|file| file.set_len(HUGE)).is_ok(),
            Self::ReadOnly | Self::Closed | Self::Open | Self::Strangers => false,
        };
        let mode = Permissions::from_mode(if self == Self::Directory { 0o700 } else { 0o600 });
        if !matches!(self, Self::Link | Self::Dangling) {
            fs::set_permissions(path, mode).expect("it was made");
            give(path);
        }
        made
    }
}

/// Every number is another one.
fn other_version(before: &[u8]) -> Vec<u8> {
    before.iter().map(|byte| if byte.is_ascii_digit() { b'9' } else { *byte }).collect()
}

fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir());
    let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// What a path leads to, as far as it must not change: its kind, owner and mode, and what a stranger put there.
fn facts(path: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(path).ok()?;
    let kind = meta.file_type();
    let kinds =
        (kind.is_file(), kind.is_dir(), kind.is_symlink(), kind.is_fifo(), kind.is_socket());
    Some(format!("{kinds:?} {:o} {}", meta.mode(), meta.uid()))
}

/// Whether these words execute a command.
fn runs(words: &[&str]) -> bool {
    ["run", "admit"].contains(&words[0])
}

/// With the command that they execute.
fn whole<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let command: &[&str] = match runs(words) {
        false => &[],
        true if words.contains(&"--polite") => &LONGER,
        true => &ECHO,
    };
    [words, command].concat()
}

/// Whether what was at this path is beside it.
fn is_set_aside(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("no name");
    let entries = path.parent().and_then(|parent| fs::read_dir(parent).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(stem))
}

/// A runtime directory with one of everything, made once.
struct Stage {
    scene: Scene,
    precious: PathBuf,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let scene = Scene::new()?;
        let home = scene.runtime().join("home");
        for folder in ["", ".config", ".config/discnice", ".cache", ".cache/discnice"] {
            make_private(&home.join(folder));
        }
        let write = |name: &str, text: &str| {
            fs::write(home.join(name), text).expect("our folder");
            give(&home.join(name));
        };
        write(".config/discnice/config.toml", "[class.failing-test]\nweight = 50\n");
        write(".cache/discnice/profile.toml", "version = 1\nfigures = []\ntrusts = []\n");
        // So long that something is learnt of it.
        let learning = [PROGRESS, &["--", "sh", "-c", "sleep 1; exit 7"]].concat();
        for words in [learning, whole(RUN), whole(ADMIT)] {
            let outcome = scene.command(&words).expect("it does not hang");
            assert_eq!(outcome.status, Some(7), "{outcome:?}");
        }
        // Its regulator saves what it learnt when it ends.
        let precious = scene.path("precious");
        fs::write(&precious, PRECIOUS).expect("our folder");
        give(&precious);
        scene.keep_as_template(&PLACES.iter().map(|place| place.path).collect::<Vec<_>>());
        Ok(Self { scene, precious })
    }

    /// The path of a place now.
    fn find(&self, pattern: &str) -> PathBuf {
        self.scene.find(pattern).unwrap_or_else(|| self.scene.runtime().join(pattern))
    }

    /// Brings a place into a state, runs what uses it, and says what was wrong.
    fn try_out(&self, place: &Place, state: State, words: &[&str]) -> Result<(), String> {
        self.scene.renew_from_template();
        let path = self.find(place.path);
        if !state.bring(&path, &self.precious) {
            return Ok(());
        }
        let before = facts(&path);
        let outcome = self.scene.command(&whole(words)).ok_or("it hangs")?;
        self.judge(place, runs(words), &outcome)?;
        let after = facts(&path);
        let replaced = place.replaced && (after.is_some() || is_set_aside(&path));
        let gone = before.is_some() && after != before && !replaced;
        let precious = fs::read_to_string(&self.precious).unwrap_or_default();
        let inside = path.join("precious");
        let kept = state != State::Directory || inside.exists();
        if gone || precious != PRECIOUS || !kept {
            return Err(format!("{before:?} became {after:?}: {outcome:?}"));
        }
        match self.scene.stopped() {
            stopped if stopped.is_empty() => Ok(()),
            stopped => Err(format!("{stopped:?} stay stopped")),
        }
    }

    /// One line or nothing; the command ran, unless this place may forbid it.
    fn judge(&self, place: &Place, runs: bool, outcome: &Outcome) -> Result<(), String> {
        let complaint = outcome.complaint();
        let lines = complaint.lines().count();
        let ours = complaint.lines().all(|line| line.starts_with("discnice: "));
        let refused = outcome.status == Some(OURS) && lines == 1;
        let ran = if runs {
            outcome.status == Some(7) && outcome.text() == "out\n"
        } else {
            outcome.status == Some(0)
        };
        let right = ran || refused && (place.refuses || !runs) && outcome.output.is_empty();
        if ours && lines <= 1 && right { Ok(()) } else { Err(format!("{outcome:?}")) }
    }

    /// Tries out a place in all states; returns the number of cases, and what was wrong.
    fn try_all(&self, place: &Place) -> (usize, Vec<String>) {
        let cases =
            STATES.iter().flat_map(|state| place.commands.iter().map(|words| (*state, *words)));
        let try_one = |(state, words): (State, &[&str])| {
            let tried = self.try_out(place, state, words);
            tried.err().map(|why| format!("{} {state:?} {words:?}: {why}", place.path))
        };
        (STATES.len() * place.commands.len(), cases.filter_map(try_one).collect())
    }
}

/// So many stages are used at once: a case mostly waits.
const STAGES: usize = 3;

fn sweep(places: &[Place]) {
    let stages: Result<Vec<Stage>, String> = (0..STAGES).map(|_| Stage::new()).collect();
    let stages = match stages {
        Ok(stages) => stages,
        Err(why) => skip!("{why}"),
    };
    let tried = together::each(&stages, places, Stage::try_all);
    let cases: usize = tried.iter().map(|(cases, _)| cases).sum();
    let wrong: Vec<String> = tried.into_iter().flat_map(|(_, wrong)| wrong).collect();
    eprintln!("{cases} cases");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_private_directory_and_what_leads_to_classes() {
    sweep(&PLACES[..5]);
}

#[test]
fn the_library_and_the_daemons_files() {
    sweep(&PLACES[5..9]);
}

#[test]
fn what_is_known_of_progress_and_settings() {
    sweep(&PLACES[9..]);
}
