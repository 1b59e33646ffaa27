//! Tells if limits can hold for a command, and why not: one decision, for `run`, which warns or
//! refuses (`--strict`), and for callers that ask before.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use discnice_escape::Foreign;
use discnice_ledger::policy::{Limits, Resource, Resources};
use discnice_sys::gate;
use discnice_watcher::network;

use crate::mechanism::{Inside, MechanismChoice, Plan};
use crate::{library, program, stack};

/// Why a limit does not hold for a command.
#[derive(Debug)]
pub enum Unheld {
    /// There is no shared memory for its class.
    NoClass(anyhow::Error),
    /// The library is not installed, or cannot be named to the dynamic linker.
    NoLibrary(anyhow::Error),
    /// The program keeps the library out, and may not be put below a filter.
    Escapes(PathBuf, &'static str),
    /// The kernel refuses a filter; what is left of the limits then, the program, and the kernel's reason.
    NoFilter(&'static str, PathBuf, String),
    /// The library is not in it, and without that this limit does not hold.
    NotSeen(PathBuf, Resource),
    /// The daemon that holds what the other mechanisms cannot see is not to be had.
    NotWatched(std::io::Error),
    /// What the limits depend on, whether others are busy, is not to be known.
    NoBoard(anyhow::Error),
    /// The kernel refuses the idle classes of processor time and disk priority.
    NoGuest(std::io::Error),
    /// The regulator by progress cannot be started.
    NotPolite(anyhow::Error),
    /// The kernel refuses to bar it and its children from other rights.
    GainsRights(std::io::Error),
}

impl Unheld {
    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoClass(_) | Self::NoLibrary(_) | Self::NoBoard(_) => {
                "`discnice doctor` tells what is missing"
            }
            Self::Escapes(..) => "attach to it once it runs, or start it without --strict",
            Self::NoFilter(..) => "try --mechanism freeze",
            Self::NotWatched(_) => "see `discnice policyd --help`",
            Self::NoGuest(_) => "say --guest=no",
            Self::NotSeen(..) => "leave that limit out",
            Self::NotPolite(_) | Self::GainsRights(_) => "start it without --strict",
        }
    }
}

impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClass(error) | Self::NoLibrary(error) => write!(f, "not limited: {error:#}"),
            Self::Escapes(path, obstacle) => {
                write!(f, "not limited: {} {obstacle}", Foreign::path(path))
            }
            Self::NoFilter(rest, path, refused) => {
                write!(f, "{rest}: {}: {refused}", Foreign::path(path))
            }
            Self::NotSeen(path, limit) => {
                let (limit, path) = (limit.option(), Foreign::path(path));
                write!(f, "{limit} does not hold: {path} runs without the library")
            }
            Self::NotWatched(error) => write!(f, "not watched from outside: {error}"),
            Self::NoBoard(error) => {
                write!(f, "limited always, not only while others are busy: {error:#}")
            }
            Self::NoGuest(error) => write!(f, "not a guest in processor time: {error}"),
            Self::NotPolite(error) => write!(f, "not polite: {error:#}"),
            Self::GainsRights(error) => write!(f, "children may gain rights: {error}"),
        }
    }
}

/// How a command is going to be held.
#[derive(Debug)]
pub struct Holding {
    /// The mechanism.
    pub plan: Plan,
    /// The file that is the command, if there is one.
    pub program: Option<PathBuf>,
    /// Why it will not be held, as far as that can be told before it is tried.
    pub unheld: Option<Unheld>,
    /// Set if the kernel refuses the filter that it would be put below.
    is_refused: bool,
    /// Set if the class is watched from outside, too.
    is_watched: bool,
}

impl Holding {
    /// Decides for a command, without changing anything.
    #[must_use]
    pub fn of(mechanism: MechanismChoice, command: &OsStr) -> Self {
        let program = program::find(command);
        let kind = program.clone().map(|path| (program::kind(&path), path));
        let installed = library::installed();
        // Where it was asked for by name, that it is missing is told.
        let is_there = installed.is_ok() || mechanism == MechanismChoice::Preload;
        let enters = is_there && stack::fits_preloading();
        let plan = match mechanism.plan(kind) {
            Plan::Preload if !enters => {
                without_library(mechanism, program.clone().unwrap_or_default())
            }
            // Its children would get the library.
            Plan::Supervised if !enters => Plan::SupervisedWholly(Inside::Impossible),
            plan => plan,
        };
        let is_refused = plan.is_supervised() && discnice_supervisor::probe().is_err();
        // What a supervisor of ours reads for the program is in no account of the program, so that watching that is in vain.
        let is_watchable = is_refused && !gate::is_needed();
        let plan = mechanism.instead_of_filter().filter(|_| is_watchable).unwrap_or(plan);
        let is_seen = !plan.needs_proc() || discnice_supervisor::shows_our_numbers();
        let plan = if is_seen { plan } else { unseen(program.clone().unwrap_or_default()) };
        let unheld = match &plan {
            Plan::Escape(path, obstacle) => Some(Unheld::Escapes(path.clone(), obstacle)),
            Plan::Preload => installed.err().map(Unheld::NoLibrary),
            Plan::Supervised | Plan::SupervisedWholly(_) | Plan::Watched => None,
        };
        Self { plan, program, unheld, is_refused, is_watched: mechanism.watches() }
    }
}

impl Holding {
    /// Tells if one of the limits cannot hold that way.
    #[must_use]
    pub fn misses(&self, limits: &Limits) -> Option<Unheld> {
        let network = if self.is_watched { network::seen() } else { Resources::NONE };
        let seen = match &self.plan {
            Plan::Watched => Resources::FROM_OUTSIDE.and(network),
            Plan::Supervised | Plan::SupervisedWholly(_) => Resources::DISK.and(network),
            Plan::Preload | Plan::Escape(..) => Resources::ALL,
        };
        let limit = limits.beyond(seen)?;
        // One that the kernel refuses a filter is told of as such.
        if self.plan.is_supervised() && self.is_refused {
            return None;
        }
        Some(Unheld::NotSeen(self.program.clone().unwrap_or_default(), limit))
    }

    /// How it is held with children that have classes of their own, if `apart`: only a watcher outside can give them those.
    #[must_use]
    pub fn apart(self, apart: bool) -> Self {
        match self.plan {
            Plan::Preload | Plan::Supervised | Plan::SupervisedWholly(_) if apart => {
                Self { plan: Plan::Watched, unheld: None, ..self }
            }
            _ => self,
        }
    }
}

/// The plan for a program that is to be held by what `/proc` tells of it, where that tells of other processes.
fn unseen(path: PathBuf) -> Plan {
    Plan::Escape(
        path,
        "cannot be seen: /proc does not show the processes of this PID namespace (`unshare --mount-proc` mounts it)",
    )
}

/// The plan for a program that the library could enter, were it there, and had the stack room for the dynamic linker's work
/// on it.
fn without_library(mechanism: MechanismChoice, path: PathBuf) -> Plan {
    match mechanism {
        MechanismChoice::Auto | MechanismChoice::Seccomp => {
            Plan::SupervisedWholly(Inside::Impossible)
        }
        MechanismChoice::Freeze => Plan::Watched,
        MechanismChoice::Preload => {
            Plan::Escape(path, "has too short a stack for the library (ulimit -s)")
        }
    }
}
