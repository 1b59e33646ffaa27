//! By which mechanism a command is regulated.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use discnice_ledger::{MemberId, State};
use discnice_supervisor::{Reach, Refused};
use discnice_sys::process;

use crate::classes::MappedClass;
use crate::output::tell;
use crate::program::{ProgramKind, obstacle};

/// What the user may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MechanismChoice {
    /// By the library inside the program if it can be loaded, otherwise by seccomp; children without the library, and
    /// programs that the kernel refuses seccomp, are paused from outside
    #[default]
    Auto,
    /// Only by the library; a program that cannot load it is not limited
    Preload,
    /// By the library; processes are paused from outside for what it does not see (page faults, io_uring, static
    /// programs)
    Freeze,
    /// By seccomp, for the command and all its children: only page faults escape. None of the processes can gain
    /// privileges (sudo, ping) or use io_uring
    Seccomp,
}

/// Whether our library could enter a program as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// The library could enter.
    Possible,
    /// The library could not enter.
    Impossible,
}

/// How one command is regulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// By our library.
    Preload,
    /// By a supervisor, with all programs that it starts.
    Supervised,
    /// By a supervisor, all of them.
    SupervisedWholly(Inside),
    /// From outside alone.
    Watched,
    /// Not at all: the program, and what keeps our library out.
    Escape(PathBuf, &'static str),
}

impl MechanismChoice {
    /// Whether the class is watched from outside, too, for the children that our library cannot enter,
    /// and for those that read where it cannot see it.
    #[must_use]
    pub fn watches(self) -> bool {
        matches!(self, Self::Auto | Self::Freeze)
    }

    /// Returns true if members with our library are held from outside at once. Not unless asked
    /// for: a process that is stopped while it copies inside the kernel sees a short count, and one
    /// that waits in our library with its account ahead of its books is charged for the same bytes
    /// again.
    #[must_use]
    pub fn is_strict(self) -> bool {
        self == Self::Freeze
    }

    /// What holds a command for which the kernel refuses a filter: if the filter was asked for by name, that is told.
    #[must_use]
    pub fn instead_of_filter(self) -> Option<Plan> {
        (self == Self::Auto).then_some(Plan::Watched)
    }

    /// What to do with a program that was found at a place, or nowhere.
    #[must_use]
    pub fn plan(self, program: Option<(ProgramKind, PathBuf)>) -> Plan {
        let obstacle = program.and_then(|(kind, path)| Some((path, obstacle(kind)?, kind)));
        let ordinary = matches!(obstacle, Some((_, _, kind)) if kind != ProgramKind::Privileged);
        match (self, obstacle) {
            (Self::Seccomp, None) => Plan::SupervisedWholly(Inside::Possible),
            (Self::Seccomp, Some(_)) => Plan::SupervisedWholly(Inside::Impossible),
            (_, None) => Plan::Preload,
            (Self::Freeze, Some(_)) if ordinary => Plan::Watched,
            // A setuid program below a filter of ours is not one any more.
            (Self::Auto, Some(_)) if ordinary => Plan::Supervised,
            (_, Some((path, obstacle, _))) => Plan::Escape(path, obstacle),
        }
    }
}

impl Plan {
    /// Returns true if our variables go into the command's environment: supervised commands need
    /// none, nor do those with descendants that are found from outside without, which `followed`
    /// tells.
    #[must_use]
    pub fn carries(&self, followed: bool) -> bool {
        match self {
            Self::Preload => true,
            Self::Supervised | Self::SupervisedWholly(_) => false,
            Self::Watched | Self::Escape(..) => !followed,
        }
    }

    /// For people: what holds a command of this plan.
    ///
    /// # Errors
    /// Nothing does, and why.
    pub fn explain(&self, kind: ProgramKind) -> Result<String, String> {
        let why = obstacle(kind).map_or(String::new(), |why| format!(": it {why}"));
        match self {
            Self::Preload => Ok("the library in it".into()),
            Self::Supervised | Self::SupervisedWholly(_) => match discnice_supervisor::probe() {
                Ok(()) => Ok(format!("a supervisor of its calls{why}")),
                Err(refused) if *self == Self::SupervisedWholly(Inside::Possible) => {
                    Ok(format!("the library in it alone: {refused}"))
                }
                Err(refused) => Err(format!("cannot be limited{why}, and {refused}")),
            },
            Self::Watched => Ok(format!("policyd, from outside{why}")),
            Self::Escape(_, why) => Err(format!("cannot be limited: it {why}")),
        }
    }

    /// What holds the command when it cannot be put below a filter.
    #[must_use]
    pub fn without_filter(&self) -> &'static str {
        match self {
            Self::Preload | Self::SupervisedWholly(Inside::Possible) => "limited from inside only",
            _ => "not limited",
        }
    }

    /// Whether a supervisor sees all that the command and its children do.
    #[must_use]
    pub fn is_supervised(&self) -> bool {
        self.reach().is_some()
    }

    /// Whether nothing holds the command where `/proc` tells nothing of it.
    #[must_use]
    pub fn needs_proc(&self) -> bool {
        matches!(
            self,
            Self::Supervised | Self::SupervisedWholly(Inside::Impossible) | Self::Watched
        )
    }

    fn reach(&self) -> Option<Reach> {
        match self {
            Self::Preload | Self::Watched | Self::Escape(..) => None,
            Self::Supervised => Some(Reach::Gated),
            Self::SupervisedWholly(_) => Some(Reach::All),
        }
    }

    /// Puts this process, which is that member, below a filter, if that is the plan.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn enter(&self, found: &MappedClass, member: Option<MemberId>) -> Result<(), Refused> {
        let Some(reach) = self.reach() else { return Ok(()) };
        let member = member.and_then(|id| found.class.member(id, process::id()));
        let set = |state| member.inspect(|member| member.set_state(state));
        // Before: the class's watcher must not take the supervisors for children of a member that
        // is regulated from outside.
        set(State::Notified);
        let complain = |error: &io::Error| {
            tell!(
                "discnice: not started: the supervisor of its calls was lost: {error}; try again"
            );
        };
        // Where there is none to be had, the class is held whatever others do.
        let board = discnice_registry::MappedBoard::find_or_create().ok().map(|found| found.board);
        discnice_supervisor::enter(found.class, board, reach, complain).inspect_err(|_| {
            set(State::Executing);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(kind: ProgramKind) -> Option<(ProgramKind, PathBuf)> {
        Some((kind, PathBuf::from("program")))
    }

    #[test]
    fn what_our_library_cannot_enter_is_supervised() {
        assert_eq!(MechanismChoice::Auto.plan(program(ProgramKind::Dynamic)), Plan::Preload);
        for kind in [
            ProgramKind::Static,
            ProgramKind::Go,
            ProgramKind::OtherMachine,
            ProgramKind::OtherLinker,
        ] {
            assert_eq!(MechanismChoice::Auto.plan(program(kind)), Plan::Supervised, "{kind:?}");
            assert_eq!(MechanismChoice::Freeze.plan(program(kind)), Plan::Watched, "{kind:?}");
        }
        assert!(!Plan::Supervised.carries(false), "the filter is inherited");
        assert!(Plan::Watched.carries(false) && !Plan::Watched.carries(true));
        assert_eq!(MechanismChoice::Auto.plan(None), Plan::Preload);
        assert_eq!(MechanismChoice::Auto.instead_of_filter(), Some(Plan::Watched));
        assert_eq!(MechanismChoice::Seccomp.instead_of_filter(), None);
        assert_eq!(MechanismChoice::Freeze.plan(program(ProgramKind::Dynamic)), Plan::Preload);
        let wholly = MechanismChoice::Seccomp.plan(program(ProgramKind::Dynamic));
        assert_eq!(wholly, Plan::SupervisedWholly(Inside::Possible));
        assert!(!wholly.carries(false));
        assert_eq!(wholly.without_filter(), "limited from inside only");
        let nothing = MechanismChoice::Seccomp.plan(program(ProgramKind::Static));
        assert_eq!(nothing.without_filter(), "not limited");
        let alone = MechanismChoice::Preload.plan(program(ProgramKind::Static));
        assert!(matches!(alone, Plan::Escape(_, "is statically linked")), "{alone:?}");
        let setuid = MechanismChoice::Auto.plan(program(ProgramKind::Privileged));
        assert!(matches!(setuid, Plan::Escape(..)), "it would lose its rights");
    }
}
