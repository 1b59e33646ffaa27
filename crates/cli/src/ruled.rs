//! Processes that rules put into classes, as policyd has them put.

use std::cell::RefCell;
use std::io;

use discnice_ledger::outside::Reason;
use discnice_processes::tree::Tree;
use discnice_sys::block::BlockId;
use discnice_sys::process::{self, user};
use discnice_sys::{procfs, time};
use discnice_watcher::daemon::rules::{Candidate, Rulebook};
use discnice_watcher::discovery::newcomer::Newcomer;
use discnice_watcher::discovery::pid_namespace::mark;
use discnice_watcher::process::{
    Pinned, Refusal, examine, is_this_program, pin, real_user, threads,
};

use crate::classes::{self, MappedClass, Origin};
use crate::config::{ConfigFiles, rules};
use crate::joining::{ADVANCE, enter};
use crate::output::tell;
use crate::{busy, fleet, membership};

/// What policyd asks of this program.
pub const RULEBOOK: Rulebook = Rulebook { place: discnice_paths::config_folder, load, admit };

thread_local! {
    /// The configuration that the rules are of. When a process enters a class, its files may hang.
    static CONFIG: RefCell<Option<ConfigFiles>> = const { RefCell::new(None) };
}

fn load() -> discnice_watcher::daemon::rules::Loaded {
    let (loaded, config) = rules::load();
    if let Some(config) = config {
        CONFIG.set(Some(config));
    }
    if let Err(why) = &loaded.rules {
        // In the journal, if policyd was started by a unit.
        tell!("discnice: rules stay as they were: {why}");
    }
    loaded
}

/// Why a process enters no class by a rule.
#[derive(Debug)]
pub enum Unfit {
    /// It is in a class, by itself or by its ancestry.
    Member(String),
    /// It is this program.
    Ourselves,
    /// It belongs to another user.
    Foreign,
    /// It cannot be held.
    Refused(Refusal),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Member(class) => write!(f, "it is in class {class} already"),
            Self::Ourselves => f.write_str("it is DiscNice itself"),
            Self::Foreign => f.write_str("it is another user's"),
            Self::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}

/// Whether a rule may put a process into a class now.
///
/// # Errors
/// Why not.
pub fn fitness(pinned: &Pinned, classes: &[MappedClass]) -> Result<(), Unfit> {
    let id = pinned.id();
    if real_user(id.cast_signed()) != Some(user()) {
        return Err(Unfit::Foreign);
    }
    if is_this_program(id) {
        return Err(Unfit::Ourselves);
    }
    // Which class that one is in cannot be told, nor is it known by its number alone.
    if let Some(unseen) = ancestry(id).find(|id| procfs::is_executing(*id)) {
        return Err(Unfit::Refused(Refusal::Executing(unseen.cast_signed())));
    }
    if let Some(found) = class_of(pinned, classes) {
        return Err(Unfit::Member(found.name()));
    }
    examine(pinned).map_err(Unfit::Refused)
}

/// A process, its parent, and so on, without the first of the system.
fn ancestry(id: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(id), |id| procfs::parent(*id).filter(|parent| *parent > 1))
}

/// The class that a process is in, or that it is about to enter: one of its ancestors' or, of those that are gone, the
/// one that its environment names.
fn class_of<'a>(pinned: &Pinned, classes: &'a [MappedClass]) -> Option<&'a MappedClass> {
    let listed = ancestry(pinned.id()).find_map(|id| {
        let pinned = pin(id.cast_signed()).ok()?;
        classes.iter().find(|found| membership::lists(found, &pinned))
    });
    if listed.is_some() {
        return listed;
    }
    let newcomer = Newcomer::from(procfs::stat(pinned.id())?);
    classes.iter().find(|found| newcomer.carries(&mark(found.class, found.block)))
}

/// Makes a process, with its descendants, members of the class of a rule; `None` for one that is in a class already or
/// has ended.
fn admit(candidate: Candidate<'_>) -> Result<Option<BlockId>, String> {
    let Ok(pinned) = pin(candidate.id.cast_signed()) else { return Ok(None) };
    if pinned.process.started != candidate.started {
        return Ok(None);
    }
    let classes = classes::all().map_err(|error| format!("{error:#}"))?;
    let entered = match fitness(&pinned, &classes) {
        Ok(()) => take_in(candidate, &pinned, &classes).map(Some),
        Err(Unfit::Refused(refusal)) => Err(refusal.to_string()),
        Err(_) => Ok(None),
    };
    classes::let_go(classes);
    entered
}

fn take_in(
    candidate: Candidate<'_>,
    pinned: &Pinned,
    classes: &[MappedClass],
) -> Result<BlockId, String> {
    if ancestry(process::id()).any(|ancestor| ancestor == pinned.id()) {
        return Err("this daemon descends from it and would hold itself".into());
    }
    let limits = candidate.limits;
    let told = |error: anyhow::Error| format!("{error:#}");
    let (found, origin) = classes::find_or_create(candidate.class).map_err(told)?;
    if origin == Origin::New {
        // Without a board it is held whatever others do.
        let _ = busy::prepare(limits);
        found.set_limits(limits);
        found.class.forfeit_credit(time::now().plus(ADVANCE));
    }
    CONFIG.with_borrow(|config| {
        if let Some(config) = config {
            fleet::follow(&found, config);
        }
    });
    let entered = enter(&found, pinned, Reason::Attached);
    if entered.is_ok() {
        take_in_descendants(&found, pinned, classes);
    }
    let block = found.block;
    classes::let_go(vec![found]);
    entered.map(|()| block).map_err(told)
}

/// Makes its present descendants members that are in no class.
fn take_in_descendants(found: &MappedClass, pinned: &Pinned, classes: &[MappedClass]) {
    if has_no_children(pinned.id()) {
        return;
    }
    let tree = Tree::new(&[pinned.process]);
    for stat in tree.iter().filter(|stat| stat.id != pinned.id() && !is_this_program(stat.id)) {
        let Ok(pinned) = pin(stat.id.cast_signed()) else { continue };
        let is_free = classes.iter().all(|other| !membership::lists(other, &pinned));
        if is_free && found.class.listed(stat.id).is_none() {
            let _ = enter(found, &pinned, Reason::Descendant);
        }
    }
}

/// Whether a process has no children, as most have none that have just begun: then not all processes are looked
/// through. False where the kernel does not tell (proc_pid_task(5), `children`).
fn has_no_children(id: u32) -> bool {
    let children = |thread| std::fs::read(format!("/proc/{id}/task/{thread}/children"));
    threads(id).all(|thread| children(thread).is_ok_and(|text| text.trim_ascii().is_empty()))
}

/// How many rules policyd follows; `None` while there is none, or one of a version that knows no rules.
pub fn followed() -> Option<usize> {
    let found: io::Result<Option<usize>> = discnice_watcher::daemon::client::rules();
    found.ok().flatten()
}
