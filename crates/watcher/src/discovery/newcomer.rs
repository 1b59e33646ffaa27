//! A process that was born lately, and what it shows of its classes.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use discnice_ledger::Token;
use discnice_ledger::token::VARIABLE;
use discnice_sys::block::BlockId;
use discnice_sys::procfs::Stat;

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
        Self { stat, marks: OnceCell::new(), apart: OnceCell::new(), ancestors }
    }

    /// Whether the process began its present program with `mark` in its environment: children of
    /// programs that our library cannot enter keep what it gave to their ancestor.
    #[must_use]
    pub fn carries(&self, mark: &[u8]) -> bool {
        self.marks.get_or_init(|| marks(self.stat.id)).iter().any(|entry| {
            entry.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
        })
    }

    /// The blocks of the classes that it names in its environment.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        let marks = self.marks.get_or_init(|| marks(self.stat.id));
        marks.iter().filter_map(|entry| Some(Token::parse(entry.strip_prefix(VARIABLE)?)?.block))
    }

    /// Whether it was born into a container in which the memory of no class of ours can be reached, whatever
    /// library is in it.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        *self.apart.get_or_init(|| {
            let theirs = memory_space(&self.stat.id.to_string());
            theirs.is_some() && theirs != memory_space("self")
        })
    }
}

/// `PF_FORKNOEXEC` of the kernel's include/linux/sched.h: the process has not executed a program since it was forked.
const FORKED_ONLY: u64 = 0x40;

/// Returns true if a process is one of DiscNice's own helpers: policyd, or a copy of a process of this program that has
/// not executed another one. Nothing holds those: they hold others.
pub(crate) fn is_helper(stat: &Stat) -> bool {
    let is_policyd = || {
        let words = command_line(stat.id).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"policyd")
    };
    is_this_program(stat.id) && (stat.flags & FORKED_ONLY != 0 || is_policyd())
}

/// What tells one namespace for System V memory from another, namespaces(7).
fn memory_space(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/ipc")).ok()
}

fn marks(id: u32) -> Vec<Vec<u8>> {
    let block = read_file(id, "environ", ENVIRONMENT, u64::MAX).unwrap_or_default();
    let entries = block.split(|byte| *byte == 0);
    entries.filter(|entry| entry.starts_with(VARIABLE)).map(<[u8]>::to_vec).collect()
}
