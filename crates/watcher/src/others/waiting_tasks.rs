//! Sees tasks of no class that wait for a disk. Exists for `eval/benches/beside.py`, foreground `sqlite`, which made 56 commits in 12 s
//! without it, and makes 117.
//!
//! A task that waits for a disk is in state D (proc(5)), whichever user started it. That covers readers, and also an
//! fsync(2) that waits for the journal, which moves next to no bytes of its own. Kernel threads wait for members' data and
//! do not count; nor do processes of this program, which write for members.

use std::collections::HashSet;

use discnice_processes::tree;
use discnice_sys::procfs::{self, Stat};
use discnice_sys::traffic;
use discnice_units::Moment;

use crate::others::disks;
use crate::others::elsewhere::{self, Done, Elsewhere};
use crate::process;
use crate::tuning;

/// `PF_KTHREAD` of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that was seen waiting.
#[derive(Debug)]
struct Suspect {
    id: u32,
    /// The thread that was last seen waiting, and when that was.
    thread: u32,
    waited_at: Moment,
    /// Voluntary context switches of that thread, and when their number was first seen.
    switches: (u64, Moment),
    /// The disks that its files lie on, and when they were looked up.
    disks: Option<Vec<u64>>,
    placed_at: Option<Moment>,
    elsewhere: Elsewhere,
    traffic: Traffic,
}

/// What the account of a process tells, if it is one of this user's: bytes that it has moved were waited for, if it waits for such
/// often enough. A wait of some milliseconds is seen by chance only, and behind what the members write its requests do not show.
#[derive(Debug, Default)]
struct Traffic {
    /// Bytes that it had moved at the last look.
    seen: Option<u64>,
    /// At how many looks it waited, and at how many it had moved bytes; halved now and then.
    waits: u32,
    moves: u32,
}

/// The tasks that are looked at.
#[derive(Debug, Default)]
pub(crate) struct WaitingTasks {
    suspects: Vec<Suspect>,
    /// Processes left in the present round, and when the next may begin.
    left: Vec<u32>,
    round_at: Moment,
    /// Kernel threads, and until when they are remembered.
    kernel: HashSet<u32>,
    kernel_until: Moment,
}

impl WaitingTasks {
    /// Calls `each` for every process that waits now and is no member, with the disks that its files lie on if those can be
    /// looked up.
    pub fn look(
        &mut self,
        now: Moment,
        mut is_member: impl FnMut(u32) -> bool,
        mut each: impl FnMut(Option<&[u64]>),
    ) {
        self.suspects.retain(|one| {
            now < one.waited_at.plus(tuning::others::TASK_SUSPECT_FOR) && !is_member(one.id)
        });
        for id in self.portion(now) {
            let known = self.suspects.iter().any(|one| one.id == id);
            if !known && self.suspects.len() < tuning::others::TASK_SUSPECTS && !is_member(id) {
                self.meet(id, now);
            }
        }
        let mut waiting: Vec<_> = self.suspects.iter_mut().collect();
        waiting.retain_mut(|one| one.look(now));
        waiting.iter_mut().for_each(|one| one.place(now));
        let is_placed = waiting.iter().any(|one| one.disks.is_some());
        let disks = if is_placed { elsewhere::look_at_disks() } else { Vec::new() };
        waiting.iter_mut().for_each(|one| each(one.disks(&disks)));
    }

    /// Takes the next processes of the present round.
    fn portion(&mut self, now: Moment) -> Vec<u32> {
        if now >= self.kernel_until {
            self.kernel.clear();
            self.kernel_until = now.plus(tuning::others::KERNEL_THREADS_FOR);
        }
        if self.left.is_empty() && now >= self.round_at {
            self.round_at = now.plus(tuning::others::TASK_ROUND);
            self.left = tree::every_process().filter(|id| !self.kernel.contains(id)).collect();
        }
        self.left.split_off(self.left.len().saturating_sub(tuning::others::TASK_PORTION))
    }

    /// Suspects a process if it waits now, and is neither a kernel thread nor one of this program.
    fn meet(&mut self, id: u32, now: Moment) {
        let Some(stat) = procfs::stat(id) else { return };
        if stat.flags & KERNEL_THREAD != 0 {
            self.kernel.insert(id);
        } else if let Some(thread) = waiting_thread(&stat)
            && !process::is_this_program(id)
        {
            self.suspects.push(Suspect::new(id, thread, now));
        }
    }
}

impl Suspect {
    /// Creates one that was just seen waiting.
    fn new(id: u32, thread: u32, now: Moment) -> Self {
        let (traffic, elsewhere) = (Traffic::default(), Elsewhere::default());
        let (switches, disks, placed_at) = ((0, now), None, None);
        Self { id, thread, waited_at: now, switches, disks, placed_at, elsewhere, traffic }
    }

    /// Looks at it again; returns true if it waits, or has waited for what it moved since the last look.
    fn look(&mut self, now: Moment) -> bool {
        let waits = self.waits(now);
        // Of another user's process, it cannot be read.
        let moved = procfs::io(self.id).map(|io| io.bytes);
        self.elsewhere.note(moved.map(|[read, _]| read));
        let all = moved.map(|[read, written]| read.saturating_add(written));
        self.traffic.note(waits, all) || waits
    }

    /// Returns true if it waits and has run within [`tuning::others::TASK_HUNG`].
    fn waits(&mut self, now: Moment) -> bool {
        let thread = match procfs::stat(self.thread) {
            Some(stat) if stat.state == b'D' => Some(self.thread),
            _ => procfs::stat(self.id).and_then(|stat| waiting_thread(&stat)),
        };
        let Some(thread) = thread else { return false };
        self.thread = thread;
        let switches = process::voluntary_switches(thread).unwrap_or_default();
        if switches != self.switches.0 {
            self.switches = (switches, now);
        }
        let moves = now < self.switches.1.plus(tuning::others::TASK_HUNG);
        if moves {
            self.waited_at = now;
        }
        moves
    }

    /// Looks up now and then which disks its files lie on.
    fn place(&mut self, now: Moment) {
        if self.placed_at.is_none_or(|at| now >= at.plus(tuning::others::TASK_DISKS_FOR)) {
            self.placed_at = Some(now);
            let disks: Option<Vec<u64>> =
                disks::of(self.id).into_iter().map(traffic::disk_of_id).collect();
            self.disks = disks.filter(|disks| !disks.is_empty());
            self.elsewhere.begin();
        }
    }

    /// Returns the disks that its files lie on; `None` if they cannot be looked up, or if it reads on others, as all disks show
    /// that were looked at since.
    fn disks(&mut self, all: &[Done]) -> Option<&[u64]> {
        let disks = self.disks.as_deref()?;
        (!self.elsewhere.is_shown(disks, all)).then_some(disks)
    }
}

impl Traffic {
    /// Notes a look; returns true if bytes were moved that the process waited for, as far as its looks tell.
    fn note(&mut self, waits: bool, moved: Option<u64>) -> bool {
        self.waits = self.waits.saturating_add(waits.into());
        let before = self.seen;
        self.seen = moved;
        let is_new = before.zip(moved).is_some_and(|(before, moved)| moved > before);
        self.moves += u32::from(is_new);
        if self.moves >= tuning::others::MOVES {
            (self.waits, self.moves) = (self.waits / 2, self.moves / 2);
        }
        is_new && self.waits.saturating_mul(tuning::others::MOVES_PER_WAIT) >= self.moves
    }
}

/// Returns a thread of the process that waits for a disk.
fn waiting_thread(stat: &Stat) -> Option<u32> {
    if stat.state == b'D' {
        return Some(stat.id);
    }
    let threads =
        (stat.threads > 1).then(|| process::threads(stat.id).take(tuning::others::TASK_THREADS));
    threads?.find(|thread| procfs::stat_unguarded(*thread).is_some_and(|stat| stat.state == b'D'))
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use discnice_requirements::skip;

    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    /// Starts a process that stays in state D, as the child that shares its memory pauses, with a file open in a folder.
    fn waiting(folder: &Path) -> Option<Child> {
        let (source, program) = (folder.join("waiting.c"), folder.join("waiting"));
        let text = "#include <sys/prctl.h>\n#include <unistd.h>\nint main(void) { if (vfork() == 0) { prctl(PR_SET_PDEATHSIG, 9); pause(); _exit(0); } }";
        fs::write(&source, text).unwrap();
        let made = Command::new("cc").arg("-w").arg(&source).arg("-o").arg(&program).status();
        made.ok().filter(|status| status.success())?;
        let file = fs::File::create(folder.join("file")).unwrap();
        Some(Command::new(&program).stdin(Stdio::null()).stdout(file).spawn().unwrap())
    }

    /// Whether this one is told of.
    fn tells(strangers: &mut WaitingTasks, now: Moment, wanted: u32) -> bool {
        let mut told = false;
        strangers.look(now, |id| id != wanted, |_| told = true);
        told
    }

    #[test]
    fn what_a_process_moves_counts_if_it_waits_for_it() {
        let mut database = Traffic::default();
        // A commit at every other look, of which one in eight is seen to wait.
        let told = (0..1000u64).filter(|at| database.note(at % 16 == 0, Some(at / 2))).count();
        assert!(told > 450, "{told}");
        let mut logger = Traffic::default();
        let told = (0..1000u64).filter(|at| logger.note(at % 300 == 0, Some(at / 2))).count();
        assert!(told < 150, "a wait now and then is one for the journal: {told}");
        let mut foreign = Traffic::default();
        assert!((0..100).all(|at| !foreign.note(at % 16 == 0, None)), "another user's");
    }

    #[test]
    fn a_process_that_waits_is_found_with_its_disks_until_it_has_waited_too_long() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let Some(mut child) = waiting(folder.path()) else { skip!("no compiler") };
        let id = child.id();
        std::thread::sleep(std::time::Duration::from_millis(50));
        // As if all others of this machine were members.
        let is_other = |other: u32| other != id;
        let mut found = (0, Vec::new());
        let mut strangers = WaitingTasks::default();
        let mut at = Moment(Nanos::SECOND.0);
        for _ in 0..200 {
            at = at.plus(tuning::others::TASK_ROUND);
            strangers.look(at, is_other, |disks| {
                found = (found.0 + 1, disks.unwrap_or_default().to_vec());
            });
            if found.0 > 0 {
                break;
            }
        }
        assert_eq!(found.0, 1);
        let device = std::os::unix::fs::MetadataExt::dev(&fs::metadata(folder.path()).unwrap());
        assert_eq!(found.1, traffic::disk_of(device).into_iter().collect::<Vec<_>>());
        assert!(tells(&mut strangers, at, id));
        assert!(
            !tells(&mut strangers, at.plus(tuning::others::TASK_HUNG), id),
            "it has not run meanwhile"
        );
        assert!(!tells(&mut strangers, at, 0), "a member");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!tells(&mut strangers, at, id));
    }
}
