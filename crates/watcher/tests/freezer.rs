//! Stopping a process by a cgroup, on the real kernel: what is seen of it, and that nothing stays
//! frozen after a kill.
//!
//! Without the test harness, because only a program of one thread may start the process that thaws:
//! this program starts itself as the holder that is killed. Where no cgroup of version 2 can be
//! made it says so and ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_ledger::outside::Mechanism;
use discnice_processes::tree::Process;
use discnice_requirements::skip;
use discnice_sys::procfs;
use discnice_watcher::Helpers;
use discnice_watcher::holding::{Freezer, Grip, Hold, Thawer, let_go_of_abandoned};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, id] = &words[..]
        && role == "hold"
    {
        return hold_until_killed(id.parse().expect("a PID"));
    }
    let Some(scene) = Scene::new() else {
        skip!("no cgroup of version 2 can be made");
    };
    stands_unseen_and_goes_on(&scene);
    a_process_that_is_killed_while_frozen_ends(&scene);
    a_process_that_another_stopped_is_left_alone(&scene);
    a_process_that_was_moved_away_is_found_again(&scene);
    one_that_has_threads_uses_what_it_prepared(&scene);
    nothing_stays_frozen_when_the_holder_is_killed(&scene);
    what_a_killed_holder_and_its_helper_left_is_taken_over(&scene);
    what_a_killed_holder_and_its_helper_left_is_let_go(&scene);
    println!("test freezer ... ok");
}

/// A cgroup of the test's own.
struct Scene(PathBuf);

impl Scene {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let path = format!("{}/discnice-test-{}", mount.split(' ').nth(4)?, std::process::id());
        fs::create_dir(&path).ok()?;
        Some(Self(path.into())).filter(|scene| scene.0.join("cgroup.freeze").exists())
    }

    /// A busy process in it.
    fn busy(&self) -> Busy<'_> {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).unwrap();
        Busy { child, scene: self }
    }

    fn children(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }

    fn is_clean(&self) -> bool {
        self.children().is_empty()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for cgroup in self.children() {
            let _ = fs::write(cgroup.join("cgroup.kill"), "1");
            std::thread::sleep(Duration::from_millis(50));
            let _ = fs::remove_dir(cgroup);
        }
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        std::thread::sleep(Duration::from_millis(50));
        let _ = fs::remove_dir(&self.0);
    }
}

struct Busy<'a> {
    child: Child,
    scene: &'a Scene,
}

impl Busy<'_> {
    fn process(&self) -> Process {
        Process::find(self.child.id()).unwrap()
    }

    fn ticks(&self) -> u64 {
        self.process().stat().unwrap().cpu_ticks
    }

    fn stands(&self) -> bool {
        let before = self.ticks();
        std::thread::sleep(Duration::from_millis(200));
        self.ticks() == before
    }

    fn cgroup(&self) -> PathBuf {
        let text = fs::read_to_string(format!("/proc/{}/cgroup", self.child.id())).unwrap();
        text.lines().find_map(|line| line.strip_prefix("0::")).unwrap().into()
    }

    fn is_back(&self) -> bool {
        self.cgroup().file_name() == self.scene.0.file_name()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(otherwise: &str, seconds: u64, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn freeze(process: Process) -> Freezer {
    let mut freezer = Freezer::find(process, Thawer::default()).expect("its cgroup is ours");
    assert_eq!(freezer.mechanism(), Mechanism::CgroupFreezer);
    wait_until("it does not stand", 5, || freezer.press().unwrap() == Grip::Firm);
    freezer
}

fn stands_unseen_and_goes_on(scene: &Scene) {
    let busy = scene.busy();
    let mut freezer = freeze(busy.process());
    for _ in 0..2 {
        wait_until("it is not held again", 5, || freezer.press().unwrap() == Grip::Firm);
        assert!(busy.stands(), "it runs");
        let state = procfs::stat(busy.child.id()).unwrap().state;
        assert!(!matches!(state, b'T' | b't'), "it shows as {}", state as char);
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let seen = waitpid(Some(Pid::from_child(&busy.child)), options).unwrap();
        assert!(seen.is_none(), "its parent sees {seen:?}");
        assert!(busy.cgroup().parent().unwrap().file_name() == scene.0.file_name());
        assert!(freezer.release());
        wait_until("it does not go on", 5, || !busy.stands());
    }
    drop(freezer);
    assert!(busy.is_back() && scene.is_clean(), "{:?}", scene.children());
}

fn a_process_that_is_killed_while_frozen_ends(scene: &Scene) {
    let mut busy = scene.busy();
    let freezer = freeze(busy.process());
    busy.signal(Signal::KILL);
    wait_until("it does not end", 1, || busy.child.try_wait().unwrap().is_some());
    drop(freezer);
    wait_until("its cgroup stays", 1, || scene.is_clean());
}

fn a_process_that_another_stopped_is_left_alone(scene: &Scene) {
    let busy = scene.busy();
    let mut freezer = Freezer::find(busy.process(), Thawer::default()).unwrap();
    busy.signal(Signal::STOP);
    wait_until("no stop", 1, || procfs::stat(busy.child.id()).unwrap().state == b'T');
    assert_eq!((freezer.press(), freezer.press_all()), (Ok(Grip::Loose), Ok(Grip::Loose)));
    let events = fs::read_to_string(scene.children()[0].join("cgroup.events")).unwrap();
    assert!(events.contains("frozen 0"), "{events}");
}

fn a_process_that_was_moved_away_is_found_again(scene: &Scene) {
    let busy = scene.busy();
    let mut freezer = freeze(busy.process());
    fs::write(scene.0.join("cgroup.procs"), busy.child.id().to_string()).unwrap();
    assert!(!busy.stands() && busy.is_back());
    wait_until("it escapes", 1, || freezer.press().unwrap() == Grip::Firm);
    assert!(busy.stands() && !busy.is_back());
    // Another program thaws it.
    fs::write(scene.children()[0].join("cgroup.freeze"), "0").unwrap();
    // The kernel thaws it a moment later, and says until then that it is frozen.
    wait_until("it runs free", 5, || freezer.press().unwrap() == Grip::Firm && busy.stands());
}

fn one_that_has_threads_uses_what_it_prepared(scene: &Scene) {
    let busy = scene.busy();
    let (prepared, unprepared) = (Helpers::default(), Helpers::default());
    prepared.prepare();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _ = ended.recv();
    });
    let find = |helpers: &Helpers| Freezer::find(busy.process(), helpers.guards.thawer.clone());
    assert!(find(&unprepared).is_none(), "nothing would thaw it");
    let mut freezer = find(&prepared).expect("what thaws it was started before the thread");
    wait_until("it does not stand", 5, || freezer.press().unwrap() == Grip::Firm);
    assert!(busy.stands(), "it runs");
    drop(freezer);
    drop(end);
    thread.join().unwrap();
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    wait_until("the thread does not end", 5, || threads() == 1);
    assert!(busy.is_back() && scene.is_clean(), "{:?}", scene.children());
}

/// Freezes the process until killed.
fn hold_until_killed(id: u32) {
    let mut freezer = freeze(Process::find(id).expect("a living process"));
    println!("frozen");
    // A forgotten one ends after a while.
    for _ in 0..500 {
        std::thread::sleep(Duration::from_millis(20));
        freezer.press().expect("it is ours");
    }
}

fn start_holder(busy: &Busy<'_>) -> Child {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["hold", &busy.child.id().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "frozen\n");
    assert!(busy.stands());
    holder
}

fn kill(mut holder: Child) {
    holder.kill().unwrap();
    holder.wait().unwrap();
}

fn nothing_stays_frozen_when_the_holder_is_killed(scene: &Scene) {
    let busy = scene.busy();
    let before = busy.ticks();
    kill(start_holder(&busy));
    wait_until("it stays frozen", 1, || busy.ticks() > before + 2 && !busy.stands());
    wait_until("its cgroup stays", 1, || busy.is_back() && scene.is_clean());
}

/// The processes that thaw of this program, and of no other.
fn helpers() -> Vec<Pid> {
    let own = std::env::current_exe().unwrap();
    let is_ours = |folder: &Path| {
        fs::read_link(folder.join("exe")).is_ok_and(|exe| exe == own)
            && fs::read(folder.join("comm")).is_ok_and(|comm| comm == b"discnice-thaw\n")
    };
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let number = |folder: PathBuf| folder.file_name()?.to_str()?.parse().ok();
    entries.filter(|folder| is_ours(folder)).filter_map(number).filter_map(Pid::from_raw).collect()
}

fn what_a_killed_holder_and_its_helper_left_is_taken_over(scene: &Scene) {
    let busy = scene.busy();
    leave_frozen(&busy);
    let freezer = Freezer::find(busy.process(), Thawer::default()).expect("nothing holds it");
    assert!(!busy.stands());
    drop(freezer);
    assert!(busy.is_back() && scene.is_clean());
}

fn what_a_killed_holder_and_its_helper_left_is_let_go(scene: &Scene) {
    let busy = scene.busy();
    leave_frozen(&busy);
    let_go_of_abandoned();
    assert!(busy.is_back() && scene.is_clean());
}

/// Leaves a process frozen that nothing holds any more.
fn leave_frozen(busy: &Busy<'_>) {
    wait_until("helpers of ended tests stay", 5, || helpers().is_empty());
    let holder = start_holder(busy);
    assert!(Freezer::find(busy.process(), Thawer::default()).is_none(), "another one holds it");
    wait_until("two helpers", 5, || helpers().len() == 1);
    let_go_of_abandoned();
    assert!(busy.stands(), "its holder lives");
    for helper in helpers() {
        kill_process(helper, Signal::KILL).unwrap();
    }
    kill(holder);
    assert!(busy.stands(), "nothing is left to thaw it");
}
