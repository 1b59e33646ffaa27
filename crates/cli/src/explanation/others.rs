//! The others that a class gives way to, as far as /proc shows them to this user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use discnice_escape::Foreign;
use discnice_ledger::board::Medium;
use discnice_sys::{process, procfs, time};
use discnice_units::{Bytes, Rate};
use discnice_watcher::{accounting, process as external};

use crate::classes;

/// Two looks at what processes move are so far apart.
const BETWEEN: Duration = Duration::from_millis(200);
/// While a class gives way, looks are at least so far apart, and what passes between two that are further apart is not counted.
const SELDOM: Duration = Duration::from_millis(500);
const LATELY: Duration = Duration::from_secs(5);
/// Most processes that are named.
const NAMED: usize = 3;

/// One process of others, and how much it moves to and from disks.
#[derive(Debug)]
pub struct Other {
    id: u32,
    name: String,
    rate: Rate,
}

/// What each process of no class has moved in all, by its PID.
type Accounts = BTreeMap<u32, Bytes>;

/// A process that moved so much since an earlier look.
struct Moved {
    id: u32,
    name: String,
    bytes: Bytes,
}

/// What others move while a class gives way to them. Processes of other users are seen by the superuser alone.
#[derive(Debug, Default)]
pub struct Moving {
    before: Option<(Instant, Accounts)>,
    moved: BTreeMap<(u32, String), Bytes>,
}

impl Moving {
    /// Looks what has moved since the last look, unless that was just now.
    pub fn look(&mut self) {
        if self.before.as_ref().is_some_and(|(when, _)| when.elapsed() < SELDOM) {
            return;
        }
        // What moved while nothing was given way to is of no concern.
        let lately = self.before.as_ref().filter(|(when, _)| when.elapsed() < LATELY);
        let (when, (now, moved)) = (Instant::now(), accounts(lately.map(|(_, before)| before)));
        for Moved { id, name, bytes } in moved {
            let sum = self.moved.entry((id, name)).or_default();
            *sum = sum.plus(bytes);
        }
        self.before = Some((when, now));
    }

    /// The process that moved most.
    pub fn most(&self) -> Option<String> {
        let ((id, name), _) = self.moved.iter().max_by_key(|(_, bytes)| **bytes)?;
        Some(format!("{}, process {id}", Foreign::text(name)))
    }
}

/// The processes of no class that move something, those that move most first.
pub fn look() -> Vec<Other> {
    let ((before, _), begun) = (accounts(None), Instant::now());
    std::thread::sleep(BETWEEN);
    let ((_, moved), seconds) = (accounts(Some(&before)), begun.elapsed().as_secs_f64());
    let rate = |moved: Bytes| Rate::per_second((moved.get() as f64 / seconds) as u64);
    let moved = moved.into_iter();
    let mut others: Vec<Other> =
        moved.map(|Moved { id, name, bytes }| Other { id, name, rate: rate(bytes) }).collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.rate));
    others
}

/// Looks at the processes that are in no class of this user: what they have moved, and which of them moved something since
/// `before`.
fn accounts(before: Option<&Accounts>) -> (Accounts, Vec<Moved>) {
    let classes = classes::all().unwrap_or_default();
    let is_member = |id: u32| classes.iter().any(|found| found.class.listed(id).is_some());
    let (mut all, mut since) = (Accounts::new(), Vec::new());
    let ids = discnice_processes::tree::every_process();
    for id in ids.filter(|id| *id != process::id() && !is_member(*id)) {
        let Some(now) = moved(id) else { continue };
        // One that was not there before has moved all of it since.
        let earlier = |before: &Accounts| before.get(&id).copied().unwrap_or_default();
        let since_then = |before| now.get().saturating_sub(earlier(before).get());
        let bytes = Bytes::new(before.map_or(0, since_then));
        if bytes > Bytes::ZERO {
            // At once: those that move most are often those that end soon.
            since.push(Moved { id, name: name(id), bytes });
        }
        all.insert(id, now);
    }
    classes::let_go(classes);
    (all, since)
}

/// What the threads of a process have moved: its own account has what ended children moved, too.
fn moved(id: u32) -> Option<Bytes> {
    let threads = accounting::threads(id);
    let sum = || threads.values().map(|io| io.read + io.written).sum();
    (!threads.is_empty()).then(|| Bytes::new(sum()))
}

/// The name of a process, or what stands for it if the process has ended.
pub(super) fn name(id: u32) -> String {
    let name = external::name(id);
    if name.is_empty() {
        return "a process that has ended".into();
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// The others on one disk in words: what they move there, and which of them were seen to move most.
pub fn on(disk: &Medium, seen: &[Other]) -> String {
    let rate = Rate::per_second(disk.others().rate(time::now()));
    let named: Vec<String> = seen
        .iter()
        .take(NAMED)
        .map(|other| format!("{} ({}) {}", Foreign::text(&other.name), other.id, other.rate))
        .collect();
    let named = if named.is_empty() { hidden() } else { named.join(", ") };
    format!("others on {}, which move {rate} there: {named}", disk_name(disk.id()))
}

/// Which others cannot be seen.
fn hidden() -> String {
    let waiting = procfs_waiting();
    if waiting.is_empty() {
        "processes of other users, or the kernel".into()
    } else {
        format!("waiting for a disk: {}", waiting.join(", "))
    }
}

/// Names of processes of any user that wait for a disk at this moment: their state is shown to all.
fn procfs_waiting() -> Vec<String> {
    let waits = |id: &u32| procfs::stat(*id).is_some_and(|stat| stat.state == b'D');
    let ids = discnice_processes::tree::every_process().filter(waits).take(NAMED);
    ids.map(|id| format!("{} ({id}, user {})", Foreign::text(&name(id)), user(id))).collect()
}

fn user(id: u32) -> String {
    let owner = fs::metadata(format!("/proc/{id}")).map(|meta| meta.uid().to_string());
    owner.unwrap_or_else(|_| "unknown".into())
}

/// The kernel's name of a disk: major number in the upper half, minor in the lower.
fn disk_name(id: u64) -> String {
    if id == Medium::ID_OF_ALL_DISKS {
        return "the disks".into();
    }
    let (major, minor) = (id >> 32, id & 0xffff_ffff);
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let name = link
        .as_deref()
        .and_then(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| format!("disk {major}:{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_not_left_without_a_name() {
        let own = String::from_utf8_lossy(&external::name(process::id())).into_owned();
        assert_eq!(name(process::id()), own);
        assert_eq!(name(u32::MAX >> 1), "a process that has ended");
    }

    #[test]
    fn each_disk_has_a_name() {
        assert_eq!(disk_name(Medium::ID_OF_ALL_DISKS), "the disks");
        assert_eq!(disk_name(7 << 32 | 4711), "disk 7:4711", "the kernel has none like it");
        for link in fs::read_dir("/sys/dev/block").unwrap().flatten().take(1) {
            let number = link.file_name().into_string().unwrap();
            let (major, minor) = number.split_once(':').unwrap();
            let id = major.parse::<u64>().unwrap() << 32 | minor.parse::<u64>().unwrap();
            let name = disk_name(id);
            assert!(fs::exists(format!("/sys/class/block/{name}")).unwrap(), "{name}");
        }
    }
}
