//! A number in a class's list is not yet a member.

use std::alloc::{Layout, alloc_zeroed};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use discnice_ledger::State;
use discnice_ledger::member::Charged;
use discnice_ledger::outside::Reason;
use discnice_ledger::policy::Limits;
use discnice_sys::procfs::{self, Stat};

use crate::accounting::threads;
use crate::discovery::census::Census;
use crate::discovery::fork_events::Ancestor;
use crate::discovery::newcomer::Newcomer;
use crate::process::pin;

use super::*;
use discnice_units::Nanos;

mod ended;

#[allow(unsafe_code, reason = "a class lives in raw memory")]
fn class() -> &'static Class {
    let layout = Layout::from_size_align(Class::SIZE, 4096).unwrap();
    // SAFETY: the layout's size is not zero; the memory is fresh, large enough and never freed.
    unsafe {
        let start = NonNull::new(alloc_zeroed(layout)).unwrap();
        Class::create(start, layout.size(), 1, b"watched", 0).unwrap()
    }
}

/// A process that belongs to no class.
struct Innocent(Child);

impl Innocent {
    fn start() -> Self {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(discnice_processes::tree::can_be_looked_at(child.id()));
        Self(child)
    }

    fn started(&self) -> u64 {
        procfs::stat(self.0.id()).unwrap().started
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many are watched of a class that lists this process in a state, as one that started then.
fn watched(innocent: &Innocent, state: State, started: Option<u64>) -> (usize, &'static Class) {
    let class = class();
    let (slot, member) =
        class.register(innocent.0.id(), Charged::default(), process::exists).unwrap();
    if let Some(started) = started {
        class.held(slot).unwrap().begin(member, started);
    }
    member.set_state(state);
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    (watch.len(), class)
}

const STATES: [State; 5] =
    [State::Active, State::Executing, State::Confined, State::Notified, State::Outside];

#[test]
fn a_later_process_with_a_members_number_is_not_watched_in_any_state() {
    let innocent = Innocent::start();
    for state in STATES {
        let dead = Some(innocent.started() - 1);
        assert_eq!(watched(&innocent, state, dead).0, 0, "{state:?}: it started later");
        assert_eq!(watched(&innocent, state, None).0, 0, "{state:?}: it shows nothing");
        assert_eq!(watched(&innocent, state, Some(innocent.started())).0, 1, "{state:?}");
    }
}

#[test]
fn what_has_announced_itself_is_answered_by_the_next_step() {
    let innocent = Innocent::start();
    let (_, class) = watched(&innocent, State::Executing, None);
    let watcher = class.watcher();
    assert!(watcher.has_answered(watcher.arrivals()), "before it began to watch");
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    watcher.announce();
    assert!(!watcher.has_answered(watcher.arrivals()));
    watch.step(1, &mut Census::default());
    assert!(watcher.has_answered(watcher.arrivals()));
}

#[test]
fn the_slot_of_a_dead_life_is_freed() {
    let innocent = Innocent::start();
    let (_, class) = watched(&innocent, State::Outside, Some(innocent.started() - 1));
    assert!(class.listed(innocent.0.id()).is_none(), "attach(1) would call it limited already");
}

#[test]
fn one_that_ended_gives_its_slot_back_and_leaves_no_kin() {
    let innocent = Innocent::start();
    let (id, class) = (innocent.0.id(), class());
    let pinned = pin(id.cast_signed()).unwrap();
    enlist(class, &pinned, Charged::default(), Reason::Attached).unwrap();
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    assert_eq!((watch.len(), watch.discovery.ever.len()), (1, 1));
    drop(innocent);
    for _ in 0..100 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        watch.step(1, &mut Census::default());
    }
    assert_eq!(
        (watch.len(), watch.discovery.ever.len()),
        (0, 0),
        "no group has its number any more"
    );
    assert!(class.listed(id).is_none());
}

#[test]
fn a_descendant_that_registers_while_it_is_met_keeps_what_it_was_charged() {
    let innocent = Innocent::start();
    let (id, class) = (innocent.0.id(), class());
    let pinned = pin(id.cast_signed()).unwrap();
    let watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    let seen = class.listed(id).map(|(slot, _)| slot);
    let (slot, member) = class.register(id, Charged::default(), process::exists).unwrap();
    let charged = Charged { read: 1 << 20, written: 0 };
    let _ = member.books().enter(charged);
    assert_eq!(watch.list(&pinned, seen), None);
    assert_eq!(class.member(slot, id).map(|member| member.books().charged()), Some(charged));
    // A slot that was there before, and was found not to be its own, is taken.
    assert!(watch.list(&pinned, Some(slot)).is_some());
    assert_eq!(member.books().charged(), Charged::default());
}

#[test]
fn a_child_is_watched_from_its_birth_while_its_preloaded_parent_starts_what_escapes() {
    let (child, own) = (Innocent::start(), process::id());
    let newcomer = || [Rc::new(procfs::stat(child.0.id()).unwrap().into())];
    let class = class();
    let (slot, member) = class.register(own, Charged::default(), process::exists).unwrap();
    class.held(slot).unwrap().begin(member, procfs::stat(own).unwrap().started);
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    assert!(!watch.meet(&newcomer()), "our library registers its children");
    member.begin_bearing();
    class.watcher().announce();
    watch.step(1, &mut Census::default());
    assert!(watch.discovery.lively_until > time::now(), "births matter at once");
    assert!(watch.meet(&newcomer()));
    member.end_bearing();
    assert!(!member.is_bearing());
}

#[test]
fn a_child_of_one_that_has_joined_since_the_last_look_is_kin() {
    let [first, joined, orphan] = std::array::from_fn(|_| Innocent::start());
    let class = class();
    let list = |innocent: &Innocent| {
        let pinned = pin(innocent.0.id().cast_signed()).unwrap();
        enlist(class, &pinned, Charged::default(), Reason::Attached).unwrap()
    };
    list(&first);
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    list(&joined);
    // As the kernel reports a process after its parent has ended: its nearest living ancestor is
    // the one that joined.
    let born = Moment(time::now().0);
    let ancestors = [&joined, &first].map(|one| Ancestor { id: one.0.id(), born }).to_vec();
    let stat = Stat { parent: 1, ..procfs::stat(orphan.0.id()).unwrap() };
    let mut newcomer = Newcomer::from(stat);
    newcomer.ancestors = ancestors;
    assert!(watch.meet(&[Rc::new(newcomer)]));
    let mut all: Vec<u32> = watch.processes().collect();
    all.sort_unstable();
    let mut wanted = [&first, &joined, &orphan].map(|one| one.0.id());
    wanted.sort_unstable();
    assert_eq!(all, wanted);
}

#[test]
fn a_child_of_one_that_ends_while_it_is_met_is_kin() {
    let [first, orphan] = std::array::from_fn(|_| Innocent::start());
    let class = class();
    let pinned = pin(first.0.id().cast_signed()).unwrap();
    enlist(class, &pinned, Charged::default(), Reason::Attached).unwrap();
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    // The census saw both, and the one in the middle has ended since.
    let middle = Innocent::start();
    let born = Moment(time::now().0);
    let seen = |of: &Innocent, line: &[&Innocent]| {
        let stat = Stat { parent: line[0].0.id(), ..procfs::stat(of.0.id()).unwrap() };
        let mut newcomer = Newcomer::from(stat);
        newcomer.ancestors = line.iter().map(|one| Ancestor { id: one.0.id(), born }).collect();
        Rc::new(newcomer)
    };
    let newcomers = [seen(&middle, &[&first]), seen(&orphan, &[&middle, &first])];
    drop(middle);
    assert!(watch.meet(&newcomers));
    assert!(watch.processes().any(|id| id == orphan.0.id()));
    // What will wait for it, not what it was a child of when the census saw it.
    let parent = watch.members.all.get(&orphan.0.id()).map(|member| member.parent);
    assert_eq!(parent, Some(process::id()));
}

/// As a command that is to be held from outside: it lists itself, is looked at, and is then left to the watcher.
#[test]
fn a_child_of_one_that_was_left_to_us_since_the_last_look_is_ours() {
    let [first, child] = std::array::from_fn(|_| Innocent::start());
    for state in [State::Executing, State::Outside] {
        let class = class();
        let (slot, member) =
            class.register(first.0.id(), Charged::default(), process::exists).unwrap();
        class.held(slot).unwrap().begin(member, first.started());
        member.set_state(State::Active);
        let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
        watch.step(1, &mut Census::default());
        assert_eq!(watch.len(), 1);
        member.set_state(state);
        let stat = Stat { parent: first.0.id(), ..procfs::stat(child.0.id()).unwrap() };
        assert!(watch.meet(&[Rc::new(Newcomer::from(stat))]), "{state:?}");
    }
}

/// A shell that has a child read a file and waits for it, when it gets a line, and then says so.
struct Parent(Innocent);

impl Parent {
    fn start(file: &Path) -> Self {
        // The kernel tells a process that has waited for a child from others.
        let script = "dd if=/dev/null 2>/dev/null; echo; read -r _; \
                      dd if=\"$0\" of=/dev/null bs=64k iflag=direct 2>/dev/null; echo; read -r _";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(Innocent(shell))
    }

    /// What the child has read is in the shell's account when this returns.
    fn bear(&mut self) {
        let child = &mut self.0.0;
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    /// Bytes that the shell moved itself, and with the children that it waited for. It waits for a line by now: whatever
    /// part of its program it had to read for that, it has read.
    fn moved(&self) -> [u64; 2] {
        let id = self.0.0.id();
        while procfs::stat(id).unwrap().state != b'S' {
            std::thread::sleep(Duration::from_millis(1));
        }
        let own = threads(id).into_values().map(|io| io.read + io.written).sum();
        [own, procfs::io(id).unwrap().bytes.into_iter().sum()]
    }
}

#[test]
fn what_came_from_children_is_not_its_own_before_their_classes_were_asked() {
    const SIZE: u64 = 1 << 20;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; SIZE as usize]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    let mut parent = Parent::start(&file);
    let [own, all] = parent.moved();
    let others = all - own;
    let class = class();
    class.set_limits(time::now(), &Limits::UNLIMITED.with_per_child(true));
    let pinned = pin(parent.0.0.id().cast_signed()).unwrap();
    enlist(class, &pinned, Charged::default(), Reason::PerChild).unwrap();
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.serve_children();
    watch.step(1, &mut Census::default());
    let id = pinned.id();
    watch.members.all.get_mut(&id).unwrap().expect_children();
    parent.bear();
    let [own, all] = parent.moved();
    assert!(all - others >= own + SIZE);
    let look = |watch: &mut Watch| {
        for _ in 0..3 {
            watch.step_member(id, time::now(), Nanos(0));
        }
        class.total().total()
    };
    assert_eq!(look(&mut watch), own);
    assert!(watch.inquires() && !watch.inquires());
    assert_eq!(look(&mut watch), own, "they are being asked");
    watch.answered(true);
    assert_eq!(look(&mut watch), all - others, "no child has ended that was known");
}

/// A copy of this process that only waits.
#[allow(unsafe_code, reason = "fork(2) without exec")]
fn copy() -> u32 {
    // SAFETY: the copy waits in the kernel until it is killed, and ends with this thread.
    unsafe {
        match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            }
            id => u32::try_from(id).unwrap(),
        }
    }
}

#[test]
fn a_helper_is_none_of_its_job_though_the_process_that_forked_it_has_ended() {
    let first = Innocent::start();
    let class = class();
    let pinned = pin(first.0.id().cast_signed()).unwrap();
    enlist(class, &pinned, Charged::default(), Reason::Attached).unwrap();
    let mut watch = Watch::new(class, BlockId::of_segment(1), Helpers::default());
    watch.step(1, &mut Census::default());
    // As the regulator of a job: in the session of a process that has ended, and a child of init.
    let (middle, helper) = (Innocent::start(), copy());
    let seen = |id: u32, parent: u32| {
        let stat = Stat { parent, session: middle.0.id(), ..procfs::stat(id).unwrap() };
        Rc::new(Newcomer::from(stat))
    };
    let newcomers = [seen(middle.0.id(), first.0.id()), seen(helper, 1)];
    drop(middle);
    watch.meet(&newcomers);
    assert!(!watch.processes().any(|id| id == helper));
}
