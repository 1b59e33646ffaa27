//! Who is new in the system.
//!
//! The kernel hands out process ids in ascending order, and tells the last one in `/proc/loadavg`:
//! one small file says whether anybody was born since the last look, and who it can be. All watched
//! classes share what is found out; each is told once by its [`Reader`].

use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

use discnice_benice::tree;
use discnice_sys::procfs::{self, Stat};
use discnice_sys::time;
use discnice_units::Nanos;

/// More births between two looks than this, or since a class was told: then look at everybody.
const MANY: u32 = 4096;
/// What one class has just looked at need not be looked at for the next one.
const FRESH: Nanos = Nanos(500_000);
/// So many are looked at at a time: on a machine with ten thousand processes a look at all of them takes a
/// second, in which nobody would be held.
const PORTION: usize = 64;
/// By this variable programs of a class are told which it is.
const VARIABLE: &[u8] = b"DISCNICE=";

/// A process that was born.
#[derive(Debug)]
pub struct Newcomer {
    /// What it was when it was found.
    pub stat: Stat,
    /// The value of `DISCNICE` in its environment, read when it is first asked for.
    mark: OnceCell<Vec<u8>>,
    apart: OnceCell<bool>,
}

impl Newcomer {
    fn new(stat: Stat) -> Rc<Self> {
        Rc::new(Self { stat, mark: OnceCell::new(), apart: OnceCell::new() })
    }

    /// Whether the process began its present program as one of the class with this mark,
    /// `SEGMENT:NONCE`: children of programs that our library cannot enter keep in their environment
    /// what it gave to their ancestor.
    #[must_use]
    pub fn carries(&self, mark: &[u8]) -> bool {
        let own = self.mark.get_or_init(|| mark_of(self.stat.id));
        own.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
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

/// What tells one namespace for System V memory from another, namespaces(7).
fn memory_space(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/ipc")).ok()
}

fn mark_of(id: u32) -> Vec<u8> {
    let block = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let mut entries = block.split(|byte| *byte == 0);
    entries.find_map(|entry| entry.strip_prefix(VARIABLE)).unwrap_or_default().to_vec()
}

/// What is known of births.
#[derive(Debug, Default)]
struct Births {
    /// Kept open: it is read hundreds of times a second.
    load: Option<File>,
    /// The first id that was not looked at yet, and whether it has been given out.
    next: Option<u32>,
    behind: bool,
    looked_at: Nanos,
    /// The latest, and the number of the first of them among all.
    found: VecDeque<Rc<Newcomer>>,
    first: u64,
}

impl Births {
    /// The number of the next one.
    fn end(&self) -> u64 {
        self.first + self.found.len() as u64
    }

    /// Looks who was born since the last look, parents before their children.
    fn look(&mut self) {
        let now = time::now();
        if now < self.looked_at.plus(FRESH) {
            return;
        }
        self.looked_at = now;
        let Some(last) = self.last_id() else { return };
        let end = last + 1;
        match self.next {
            Some(next) if next <= end && end - next < MANY => {
                let until = end.min(next + PORTION as u32);
                self.next = Some(until);
                self.behind = until < end;
                let mut new: Vec<Stat> = (next..until).filter_map(living).collect();
                new.sort_by_key(order);
                self.found.extend(new.into_iter().map(Newcomer::new));
                let old = self.found.len().saturating_sub(MANY as usize);
                self.found.drain(..old);
                self.first += old as u64;
            }
            _ => {
                // Nobody has been told of the one whom this leaves out.
                self.first = self.end() + 1;
                self.found.clear();
                (self.next, self.behind) = (Some(end), false);
            }
        }
    }

    /// The id that was given out last (proc(5), `/proc/loadavg`, fifth field); threads have ids too.
    fn last_id(&mut self) -> Option<u32> {
        if self.load.is_none() {
            self.load = File::open("/proc/loadavg").ok();
        }
        let mut text = [0; 128];
        let length = self.load.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.trim_end().rsplit(' ').next()?.parse().ok()
    }
}

/// What is known of births, shared by all who read it.
#[derive(Debug, Clone, Default)]
pub struct Census(Rc<RefCell<Births>>);

/// One who is told of each birth once, and of all who live at the beginning.
#[derive(Debug, Default)]
pub struct Reader {
    census: Census,
    told: Option<u64>,
    everybody: Everybody,
}

impl Reader {
    /// Nobody has been told yet.
    #[must_use]
    pub fn new(census: Census) -> Self {
        Self { census, ..Self::default() }
    }

    /// Living processes that are new since the last call. The first call, and one when too many were born to tell,
    /// begins to look at all that live; later ones go on with that in portions. Parents come before their children.
    pub fn newcomers(&mut self) -> Vec<Rc<Newcomer>> {
        let mut births = self.census.0.borrow_mut();
        births.look();
        let mut found = Vec::new();
        match self.told.replace(births.end()) {
            Some(told) if told >= births.first => {
                let from = (told - births.first) as usize;
                found.extend(births.found.range(from..).map(Rc::clone));
            }
            _ => self.everybody = Everybody::begin(),
        }
        found.extend(self.everybody.next().into_iter().map(Newcomer::new));
        found
    }

    /// Whether not everybody who lives has been told yet.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.everybody.is_done() || self.census.0.borrow().behind
    }
}

/// All processes of a moment, told in portions.
#[derive(Debug, Default)]
struct Everybody {
    /// Not looked at yet.
    ids: Vec<u32>,
    /// All that were looked at, the oldest last as soon as `ids` is empty.
    found: Vec<Stat>,
}

impl Everybody {
    fn begin() -> Self {
        Self { ids: tree::every_process().collect(), found: Vec::new() }
    }

    fn is_done(&self) -> bool {
        self.ids.is_empty() && self.found.is_empty()
    }

    /// The next portion: nobody, while some are still to be looked at, as they could be parents of the others.
    fn next(&mut self) -> Vec<Stat> {
        if !self.ids.is_empty() {
            let rest = self.ids.len().saturating_sub(PORTION);
            self.found.extend(self.ids.drain(rest..).filter_map(living));
            if !self.ids.is_empty() {
                return Vec::new();
            }
            self.found.sort_by_key(|stat| Reverse(order(stat)));
        }
        let rest = self.found.len().saturating_sub(PORTION);
        self.found.drain(rest..).rev().collect()
    }
}

/// Parents before their children.
fn order(stat: &Stat) -> (u64, u32) {
    (stat.started, stat.id)
}

fn living(id: u32) -> Option<Stat> {
    procfs::stat(id).filter(|stat| !stat.has_ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn newcomers_are_found_once() {
        let mut census = Reader::default();
        let own = |found: &[Rc<Newcomer>], id: u32| found.iter().any(|one| one.stat.id == id);
        let mut told = Vec::new();
        while told.is_empty() || census.is_behind() {
            told.extend(census.newcomers());
        }
        assert!(own(&told, std::process::id()), "everybody is told");
        let place = |id| told.iter().position(|one| one.stat.id == id);
        assert!(place(std::os::unix::process::parent_id()) < place(std::process::id()));
        while census.is_behind() {
            census.newcomers();
        }
        let mut child = Command::new("sleep").arg("100").env("DISCNICE", "1f:2").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut found = census.newcomers();
        while census.is_behind() {
            found.extend(census.newcomers());
        }
        let found = found.iter().find(|one| one.stat.id == child.id()).unwrap();
        assert!(!own(&census.newcomers(), child.id()));
        assert!(found.carries(b"1f:2") && found.carries(b"1f"));
        assert!(!found.carries(b"1"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
