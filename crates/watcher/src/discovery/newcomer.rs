//! A process that was born lately, and what it shows of its classes.

use std::cell::{Cell, OnceCell};
use std::fs;

use discnice_ledger::Token;
use discnice_ledger::token::VARIABLE;
use discnice_sys::block::BlockId;
use discnice_sys::procfs::{self, Stat};

use crate::discovery::fork_events::Ancestor;
use crate::process::{command_line, is_this_program, read_file};

/// Bytes of an environment, at most as a rule.
const ENVIRONMENT: usize = 8192;

/// A process that was born lately.
#[derive(Debug)]
pub struct Newcomer {
    /// What `/proc` said of it.
    pub stat: Stat,
    /// Classes that its environment names, read when first asked for.
    marks: OnceCell<Vec<Vec<u8>>>,
    apart: OnceCell<bool>,
    /// Set if it executed a program when it was to be looked at.
    unseen: Cell<bool>,
    /// Its parent at birth, that one's, and so on, where the kernel tells.
    pub(crate) ancestors: Vec<Ancestor>,
}

impl From<Stat> for Newcomer {
    fn from(stat: Stat) -> Self {
        Self::of(stat, Vec::new())
    }
}

impl Newcomer {
    /// One with these ancestors, as far as they are known.
    pub(crate) fn of(stat: Stat, ancestors: Vec<Ancestor>) -> Self {
        let (marks, apart, unseen) = (OnceCell::new(), OnceCell::new(), Cell::new(false));
        Self { stat, marks, apart, unseen, ancestors }
    }

    /// Looks at it, unless it executes a program.
    pub(crate) fn look<T>(&self, look: impl FnOnce(u32) -> T) -> Option<T> {
        if procfs::is_executing(self.stat.id) {
            self.note_unseen();
            return None;
        }
        Some(look(self.stat.id))
    }

    /// Notes that it executed a program when it was to be looked at.
    pub(crate) fn note_unseen(&self) {
        self.unseen.set(true);
    }

    /// Returns true if what it shows is not all known, as it executed a program: it is to be met again.
    pub(crate) fn is_unseen(&self) -> bool {
        self.unseen.get()
    }

    fn marks(&self) -> &[Vec<u8>] {
        self.marks.get_or_init(|| self.look(marks).unwrap_or_default())
    }

    /// Whether the process began its present program with `mark` in its environment: children of
    /// programs that our library cannot enter keep what it gave to their ancestor.
    #[must_use]
    pub fn carries(&self, mark: &[u8]) -> bool {
        self.marks().iter().any(|entry| {
            entry.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
        })
    }

    /// The blocks of the classes that it names in its environment.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.marks()
            .iter()
            .filter_map(|entry| Some(Token::parse(entry.strip_prefix(VARIABLE)?)?.block))
    }

    /// Whether it was born into a container in which the memory of no class of ours can be reached, whatever
    /// library is in it.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        *self.apart.get_or_init(|| {
            // What tells one namespace for System V memory from another, namespaces(7).
            let theirs = self.look(|id| fs::read_link(format!("/proc/{id}/ns/ipc")).ok()).flatten();
            theirs.is_some() && theirs != fs::read_link("/proc/self/ns/ipc").ok()
        })
    }
}

/// `PF_FORKNOEXEC` of the kernel's include/linux/sched.h: the process has not executed a program since it was forked.
const FORKED_ONLY: u64 = 0x40;

/// Returns true if a process is one of DiscNice's own helpers: policyd, or a copy of a process of this program that has
/// not executed another one. Nothing holds those: they hold others.
pub(crate) fn is_helper(newcomer: &Newcomer) -> bool {
    let stat = &newcomer.stat;
    let is_policyd = || {
        let words = command_line(stat.id).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"policyd")
    };
    newcomer.look(is_this_program) == Some(true) && (stat.flags & FORKED_ONLY != 0 || is_policyd())
}

fn marks(id: u32) -> Vec<Vec<u8>> {
    let block = read_file(id, "environ", ENVIRONMENT, u64::MAX).unwrap_or_default();
    let entries = block.split(|byte| *byte == 0);
    entries.filter(|entry| entry.starts_with(VARIABLE)).map(<[u8]>::to_vec).collect()
}
