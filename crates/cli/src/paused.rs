//! What `discnice pause` and `resume` are about: whole classes, members with their descendants, and processes of no class.
//!
//! That something is paused is noted in its class, so that the next watcher goes on holding where one was killed. It stands
//! by the same means as what exceeds a limit: the kernel, or a helper, lets go of it when its holder dies.

use std::iter;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use discnice_ledger::outside::{Account, Held, Reason};
use discnice_ledger::{Member, State};
use discnice_processes::tree::{Process, Tree};
use discnice_sys::{process, procfs};
use discnice_watcher::daemon::client::Confirmation;
use discnice_watcher::process::{Pinned, examine, pin, tracer};
use rustix::process::getpid;

use crate::classes::{self, MappedClass};
use crate::commands::member_report;
use crate::family::Family;
use crate::{joining, membership, watching};

/// What is to stand does so within this, unless something speaks against it.
const PROMPT: Duration = Duration::from_millis(1000);
const LOOK: Duration = Duration::from_millis(5);
/// The command in the name of a class that was made to pause a process of none.
const MADE: &str = "pause";

/// What a word names.
#[derive(Debug)]
pub enum PauseTarget {
    /// A class, or a part of one.
    Known(Chosen),
    /// A process that is in no class.
    Stranger(Pinned),
}

/// A class, or one of its members with its descendants.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    found: MappedClass,
    part: Option<Process>,
}

impl PauseTarget {
    /// What a word names, if it may be paused.
    ///
    /// # Errors
    /// There is none, or it may not be paused.
    pub fn to_pause(word: &str) -> anyhow::Result<Self> {
        let target = Self::named(word)?;
        ensure!(
            !target.has_this_command(),
            "this command is in {word} and would be paused with it; start it elsewhere"
        );
        if let Self::Stranger(pinned) = &target {
            examine(pinned)?;
        }
        Ok(target)
    }

    /// A number is a process, another word a class. Of a class that was made for one job the job's first process stands for all.
    fn named(word: &str) -> anyhow::Result<Self> {
        let Ok(number) = word.parse::<i32>() else {
            let found = classes::known(word)?;
            return Ok(Self::Known(Chosen { found, part: None }));
        };
        let pinned = pin(number)?;
        let process = pinned.process;
        let Some(found) = membership::class_of(&pinned)? else {
            return Ok(Self::Stranger(pinned));
        };
        let leads = found.is_automatic() && found.name().ends_with(&format!("-{number}"));
        Ok(Self::Known(Chosen { found, part: (!leads).then_some(process) }))
    }

    /// Whether this process is of it, by itself or by its descent.
    fn has_this_command(&self) -> bool {
        let own = getpid().as_raw_nonzero().get().unsigned_abs();
        let mut line = iter::successors(Some(own), |one| procfs::parent(*one));
        match self {
            Self::Known(Chosen { found, part: None }) => {
                line.any(|one| found.class.listed(one).is_some())
            }
            Self::Known(Chosen { part: Some(process), .. }) => line.any(|one| one == process.id()),
            Self::Stranger(pinned) => line.any(|one| one == pinned.id()),
        }
    }

    /// The class or part; a process of no class gets one without limits.
    ///
    /// # Errors
    /// No class can be made, or watched.
    pub fn taken(self) -> anyhow::Result<Chosen> {
        match self {
            Self::Known(chosen) => Ok(chosen),
            Self::Stranger(pinned) => {
                let name = classes::automatic_name(MADE, pinned.id());
                let found = joining::take_in(&name, pinned)?;
                Ok(Chosen { found, part: None })
            }
        }
    }
}

impl Chosen {
    /// All of a class.
    pub fn class(found: MappedClass) -> Self {
        Self { found, part: None }
    }

    /// A process of a class, with its descendants.
    pub fn part(found: MappedClass, process: Process) -> Self {
        Self { found, part: Some(process) }
    }

    /// What a word names, if it is paused.
    ///
    /// # Errors
    /// There is none, or it is not paused.
    pub fn to_resume(word: &str) -> anyhow::Result<Self> {
        let PauseTarget::Known(chosen) = PauseTarget::named(word)? else {
            bail!("process {word} is not paused; see `discnice status`");
        };
        let Self { found, part } = chosen;
        let name = found.name();
        // Of a class that was made to pause something, any member stands for all.
        let part = part.filter(|_| !chosen.was_made());
        if part.is_some() && found.class.is_paused() {
            bail!("process {word} is paused with its class; `discnice resume {name}` resumes both");
        }
        let chosen = Self { found, part };
        let paused =
            found.class.is_paused() || chosen.accounts().iter().any(|account| account.paused);
        ensure!(paused, "{word} is not paused; see `discnice status`");
        Ok(chosen)
    }

    /// Whether the class was made to pause a process of none, and so has no limits.
    fn was_made(self) -> bool {
        let name = self.found.name();
        let made = name.get(1..).is_some_and(|name| name.starts_with(MADE));
        self.found.is_automatic() && made && self.found.class.limited().is_empty()
    }

    /// The class that it is, or is a part of.
    pub fn found(self) -> MappedClass {
        self.found
    }

    /// Whether it is to stand.
    pub fn is_paused(self) -> bool {
        let Some(process) = self.part else { return self.found.class.is_paused() };
        let (class, id) = (self.found.class, process.id());
        let account = class.listed(id).and_then(|(slot, member)| class.held(slot)?.of(member));
        class.is_paused() || account.is_some_and(|account| account.paused)
    }

    /// What `of` says of the members that it is about, with their slots and what is known of them from outside; those that
    /// are in classes of their own (`--per-child`) included.
    fn members<T>(self, of: impl Fn(&Member, Option<&Held>) -> Option<T>) -> Vec<T> {
        let tree = self.part.map(|process| Tree::new(&[process]));
        let is_it = |member: &Member| {
            let is_in = |tree: &Tree| tree.iter().any(|stat| stat.id == member.process());
            tree.as_ref().is_none_or(is_in)
        };
        let family = Family::of(self.found);
        let classes = family.classes().map(|found| found.class);
        let all = classes.flat_map(|class| {
            let slots = class.living_slots(process::exists);
            slots.map(|(slot, member)| (member, class.held(slot)))
        });
        all.filter(|(member, _)| is_it(member))
            .filter_map(|(member, held)| of(member, held))
            .collect()
    }

    /// What is known from outside of those that a watcher knows.
    fn accounts(self) -> Vec<Account> {
        self.members(|member, held| held?.of(member))
    }

    /// Notes at each of its members whether it is paused, and has the watcher look at that.
    fn mark(self, paused: bool) {
        // One that its watcher does not know yet is noted at the next look.
        self.members(|member, held| held.map(|held| held.set_paused(member, paused)));
        let family = Family::of(self.found);
        family.classes().for_each(MappedClass::wake);
    }

    /// Pauses it; returns the processes that do not stand, with the reasons.
    ///
    /// # Errors
    /// Nothing can hold it: no daemon answers. It is not paused then.
    pub fn stand(self) -> anyhow::Result<Vec<(u32, &'static str)>> {
        self.watch().context("nothing can hold it")?;
        if self.part.is_none() {
            self.found.set_paused(true);
        }
        let deadline = Instant::now() + PROMPT;
        loop {
            if self.part.is_some() {
                // Some may have been born meanwhile.
                self.mark(true);
            }
            if let Err(error) = self.watch() {
                self.go_on();
                return Err(error).context("nothing can hold it");
            }
            let awake = self.awake();
            if awake.is_empty() || Instant::now() > deadline {
                return Ok(awake);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn awake(self) -> Vec<(u32, &'static str)> {
        let standing =
            |account: Account| account.reason == Reason::Paused && account.mechanism.is_some();
        let unknown = "its watcher does not know it yet";
        self.members(|member, held| {
            if procfs::stat(member.process()).is_none_or(|stat| stat.has_ended()) {
                return None;
            }
            let why = match held.and_then(|held| held.of(member)) {
                Some(account) if standing(account) => return None,
                Some(account) => member_report::explain(account.reason).unwrap_or(unknown),
                None => unknown,
            };
            Some((member.process(), why))
        })
    }

    fn watch(self) -> anyhow::Result<()> {
        watching::watch(&self.found, Confirmation::Awaited)
            .context("no daemon answers (see `discnice policyd --help`)")
    }

    /// Lets it go on; when this returns it runs.
    pub fn go_on(self) {
        if self.part.is_none() {
            self.found.set_paused(false);
        }
        if self.was_made() {
            let is_outside = |member: &Member| member.state() == State::Outside;
            self.members(|member, _| is_outside(member).then(|| member.release()));
        }
        self.mark(false);
        // Where there is no daemon nothing is held.
        let _ = watching::watch(&self.found, Confirmation::Unneeded);
        let deadline = Instant::now() + PROMPT;
        let members = self.members(|member, _| Some(member.process()));
        while members.iter().any(|id| tracer(id.cast_signed()).is_some())
            && Instant::now() < deadline
        {
            std::thread::sleep(LOOK);
        }
    }
}
