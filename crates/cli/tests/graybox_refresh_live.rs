//! `discnice refresh` of directories in use: what is in use is left and named, the rest is
//! rewritten, and no write that was acknowledged is lost, whenever refresh is killed.

mod graybox_support;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use discnice_requirements::skip;
use graybox_support::{Scratch, run};

const STATIC: u32 = 120;
/// Files that are held open without a write.
const LATE: usize = 8;

fn contents(number: u32) -> Vec<u8> {
    (0..number * 531 % 30_000).map(|at| (at * number) as u8).collect()
}

fn make_static(tree: &Path) {
    fs::create_dir_all(tree.join("sub")).unwrap();
    for number in 0..STATIC {
        fs::write(static_file(tree, number), contents(number)).unwrap();
    }
}

fn static_file(tree: &Path, number: u32) -> PathBuf {
    tree.join(if number.is_multiple_of(2) { "" } else { "sub" }).join(format!("static{number}"))
}

fn static_inodes(tree: &Path) -> BTreeSet<u64> {
    (0..STATIC).map(|number| fs::metadata(static_file(tree, number)).unwrap().ino()).collect()
}

fn assert_static(tree: &Path) {
    for number in 0..STATIC {
        let found = fs::read(static_file(tree, number)).unwrap();
        assert!(found == contents(number), "static{number} changed");
    }
}

//= gray-box/4.2.5-users-of-inodes
#[test]
fn a_directory_in_use_is_refreshed_around_its_users() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_static(&tree);
    // One change in 0.75 s, a log that is held open, a server, a shell.
    let mut log = File::create(tree.join("log")).unwrap();
    let server = UnixListener::bind(tree.join("socket")).unwrap();
    let mut shell = Command::new("sleep").arg("600").current_dir(tree.join("sub")).spawn().unwrap();
    let inode = |name: &str| fs::symlink_metadata(tree.join(name)).unwrap().ino();
    let kept = ["log", "socket", "sub", "."].map(inode);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                fs::write(tree.join("changing"), format!("{number}")).unwrap();
                std::thread::sleep(Duration::from_millis(750));
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        for round in 0..6 {
            let before = static_inodes(&tree);
            let out = run(&mut scratch.discnice(["refresh", "tree"]));
            assert_eq!(out.status, 0, "round {round}: {}", out.stderr);
            assert!(out.stdout.contains("log: in use by process"), "{}", out.stdout);
            let same = before.intersection(&static_inodes(&tree)).count();
            assert_eq!(same, 0, "round {round} left files that were not in use");
            log.write_all(b"line\n").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_static(&tree);
    assert_eq!(["log", "socket", "sub", "."].map(inode), kept);
    assert_eq!(fs::read(tree.join("log")).unwrap(), b"line\n".repeat(6));
    let mut client = UnixStream::connect(tree.join("socket")).unwrap();
    client.write_all(b"hello").unwrap();
    drop(client);
    let mut heard = String::new();
    server.accept().unwrap().0.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "hello");
}

#[test]
fn what_cannot_be_read_is_left_and_named() {
    const USER: u32 = 54_321;
    let scratch = Scratch::new();
    if !scratch.can_become_nobody() {
        skip!("two users need root");
    }
    let tree = scratch.path("tree");
    make_static(&tree);
    fs::write(tree.join("secret"), b"kept").unwrap();
    fs::create_dir_all(tree.join("closed/inner")).unwrap();
    fs::write(tree.join("foreign"), b"another user's").unwrap();
    let mut give = Command::new("chown");
    assert_eq!(run(give.arg("-R").arg(format!("{USER}:{USER}")).arg(&tree)).status, 0);
    chown(tree.join("foreign"), Some(0), None).unwrap();
    // A group that the user is not in.
    chown(static_file(&tree, 0), None, Some(0)).unwrap();
    for name in ["secret", "closed"] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let mut mkfifo = Command::new("mkfifo");
    assert_eq!(run(mkfifo.arg(tree.join("fifo")).uid(USER)).status, 0);
    let inodes = ["secret", "closed", "foreign", "fifo"]
        .map(|name| fs::symlink_metadata(tree.join(name)).unwrap().ino());
    let before = static_inodes(&tree);
    let out = run(scratch.discnice(["refresh", "tree"]).uid(USER).gid(USER));
    assert_eq!(out.status, 0, "{}", out.stderr);
    let said = [
        "left as they are: 4",
        "static0: a copy could not have its group or attributes",
        "closed: Permission denied",
        "secret: Permission denied",
        "foreign: belongs to another user",
    ];
    for line in said {
        assert!(out.stdout.contains(line), "{line}: {}", out.stdout);
    }
    assert_eq!(before.intersection(&static_inodes(&tree)).count(), 1);
    assert_static(&tree);
    for (name, inode) in ["secret", "closed", "foreign", "fifo"].into_iter().zip(inodes) {
        assert_eq!(fs::symlink_metadata(tree.join(name)).unwrap().ino(), inode, "{name}");
    }
    assert_eq!(fs::read(tree.join("secret")).unwrap(), b"kept");
    fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Programs that write to a directory until they are told to stop. What a method has done before
/// it returns is acknowledged.
struct Writers<'a> {
    tree: &'a Path,
    stop: AtomicBool,
}

impl Writers<'_> {
    fn going(&self, pause: u64) -> bool {
        std::thread::sleep(Duration::from_micros(pause));
        !self.stop.load(Ordering::Relaxed)
    }

    /// Appends a record to the file, which must be as long as all that were appended before.
    fn append(file: &mut File, count: u64, name: &str) {
        assert_eq!(file.metadata().unwrap().len(), count * 8, "{name} lost records");
        file.write_all(&count.to_le_bytes()).unwrap();
    }

    fn open(&self, name: &str) -> File {
        OpenOptions::new().append(true).create(true).open(self.tree.join(name)).unwrap()
    }

    /// Opens, appends, syncs and closes.
    fn append_and_sync(&self) -> u64 {
        let mut count = 0;
        while self.going(2000) {
            let mut file = self.open("appended");
            Self::append(&mut file, count, "appended");
            file.sync_all().unwrap();
            count += 1;
        }
        count
    }

    /// Opens, appends and closes as fast as it can, to meet an exchange in its very moment.
    fn append_fast(&self) -> [u64; 8] {
        let mut counts = [0; 8];
        while self.going(0) {
            for (number, count) in counts.iter_mut().enumerate() {
                let name = format!("sub/fast{number}");
                Self::append(&mut self.open(&name), *count, &name);
                *count += 1;
            }
            // Long enough to be copied, sometimes.
            if counts[0].is_multiple_of(20) {
                std::thread::sleep(Duration::from_millis(counts[0] % 7 * 60));
            }
        }
        counts
    }

    /// Holds a file open for a while and appends to it.
    fn append_held(&self) -> u64 {
        let mut count = 0;
        while self.going(150_000) {
            let mut file = self.open("held");
            for _ in 0..20 {
                Self::append(&mut file, count, "held");
                file.sync_all().unwrap();
                count += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        count
    }

    /// Opens files, and writes to each only a good while later: an exchange in between would lead
    /// the write into a file without a name.
    fn write_late(&self) -> [u64; LATE] {
        let mut counts = [0; LATE];
        let mut open = std::collections::VecDeque::new();
        let mut next = 0;
        loop {
            let going = self.going(120_000);
            if going {
                open.push_back((next, self.open(&format!("late{next}"))));
                next = (next + 1) % LATE;
            }
            if open.len() > LATE - 2 || !going {
                let Some((number, mut file)) = open.pop_front() else { return counts };
                Self::append(&mut file, counts[number], &format!("late{number}"));
                file.sync_all().unwrap();
                counts[number] += 1;
            }
        }
    }

    /// Puts new versions of a file in place of old ones.
    fn rename_over(&self) -> u64 {
        let mut version = 0u64;
        while self.going(500 + version % 11 * 10_000) {
            version += 1;
            let new = self.tree.join("replaced.new");
            let mut file = File::create(&new).unwrap();
            file.write_all(&version.to_le_bytes()).unwrap();
            file.sync_all().unwrap();
            drop(file);
            fs::rename(&new, self.tree.join("replaced")).unwrap();
        }
        version
    }

    /// Creates files and unlinks them a while later.
    fn create_and_unlink(&self) -> u64 {
        let mut count = 0u64;
        while self.going(4000) {
            let mut file = File::create_new(self.tree.join(format!("sub/made{count}"))).unwrap();
            file.write_all(&count.to_le_bytes()).unwrap();
            file.sync_all().unwrap();
            count += 1;
            if count > 40 {
                fs::remove_file(self.tree.join(format!("sub/made{}", count - 41))).unwrap();
            }
        }
        count
    }
}

fn records(count: u64) -> Vec<u8> {
    (0..count).flat_map(u64::to_le_bytes).collect()
}

/// Refreshes again and again and kills all but each sixth.
fn refresh_and_kill(scratch: &Scratch, kills: u32, whole: Duration) -> u32 {
    let mut killed = 0;
    for round in 0..kills {
        let mut child = scratch.discnice(["refresh", "tree"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        if round % 6 == 5 {
            let out = child.wait_with_output().unwrap();
            assert!(out.status.success(), "round {round}: {out:?}");
            continue;
        }
        std::thread::sleep(whole * (round * 37 % kills) / kills);
        killed += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
    }
    killed
}

#[test]
fn acknowledged_writes_outlive_kills() {
    /// More by `DISCNICE_KILLS=1000`.
    const KILLS: u32 = 48;
    let kills = std::env::var("DISCNICE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    make_static(&tree);
    let writers = Writers { tree: &tree, stop: AtomicBool::new(false) };
    let (appended, fast, held, late, replaced, made, killed) = std::thread::scope(|scope| {
        let appended = scope.spawn(|| writers.append_and_sync());
        let fast = scope.spawn(|| writers.append_fast());
        let held = scope.spawn(|| writers.append_held());
        let late = scope.spawn(|| writers.write_late());
        let replaced = scope.spawn(|| writers.rename_over());
        let made = scope.spawn(|| writers.create_and_unlink());
        let clock = Instant::now();
        let first = run(&mut scratch.discnice(["refresh", "tree"]));
        let whole = clock.elapsed();
        let killed = std::panic::catch_unwind(|| refresh_and_kill(&scratch, kills, whole));
        writers.stop.store(true, Ordering::Relaxed);
        assert_eq!(first.status, 0, "{}", first.stderr);
        (
            appended.join().unwrap(),
            fast.join().unwrap(),
            held.join().unwrap(),
            late.join().unwrap(),
            replaced.join().unwrap(),
            made.join().unwrap(),
            killed.unwrap(),
        )
    });
    let check = |when: &str| {
        let read = |name: &str| fs::read(tree.join(name)).unwrap();
        assert!(read("appended") == records(appended), "{when}: appended");
        assert!(read("held") == records(held), "{when}: held");
        for (number, count) in fast.into_iter().enumerate() {
            assert!(read(&format!("sub/fast{number}")) == records(count), "{when}: fast{number}");
        }
        for (number, count) in late.into_iter().enumerate() {
            assert!(read(&format!("late{number}")) == records(count), "{when}: late{number}");
        }
        assert_eq!(read("replaced"), replaced.to_le_bytes(), "{when}: replaced");
        let there = |number: u64| tree.join(format!("sub/made{number}")).exists();
        for number in 0..made {
            assert_eq!(there(number), number + 40 >= made, "{when}: made{number} of {made}");
        }
        assert_static(&tree);
    };
    let out = run(&mut scratch.discnice(["refresh", "tree"]));
    assert_eq!((out.status, &*out.stderr), (0, ""), "{}", out.stdout);
    check("after the last refresh");
    let names = fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.eq(["tree"]), "something was left");
    assert!(killed > kills / 3, "only {killed} of {kills} were killed in time");
    eprintln!(
        "{killed} kills beside {appended} + {held} + {replaced} + {made} synced writes, and {fast:?}"
    );
}

/// Counts in a mapped file, which it maps anew for each number; `LOST` if it finds another number than the last.
const COUNTER: &str = "
import mmap, os, sys, time
last = 0
print('goes', flush=True)
while os.path.exists(sys.argv[2]):
    with open(sys.argv[1], 'r+b') as file, mmap.mmap(file.fileno(), 4096) as memory:
        if int.from_bytes(memory[:8], 'little') != last: sys.exit('LOST')
        last += 1
        memory[:8] = last.to_bytes(8, 'little')
    time.sleep(0.01)
";

#[test]
fn what_is_written_by_a_mapping_is_kept_where_times_do_not_tell() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        skip!("no file system in memory");
    };
    let scratch = Scratch::new();
    let (tree, go) = (folder.path().join("tree"), folder.path().join("go"));
    fs::create_dir(&tree).unwrap();
    for number in 0..100 {
        fs::write(tree.join(number.to_string()), vec![1; 20_000]).unwrap();
    }
    fs::write(tree.join("counter"), vec![0; 4096]).unwrap();
    fs::write(&go, "").unwrap();
    let mut counter = Command::new("python3");
    counter.args(["-c", COUNTER]).arg(tree.join("counter")).arg(&go).stdout(Stdio::piped());
    let mut counter = counter.spawn().unwrap();
    counter.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
    for _ in 0..4 {
        let out = run(scratch.discnice(["refresh"]).arg(&tree));
        assert_eq!((out.status, &*out.stderr), (0, ""), "{}", out.stdout);
    }
    fs::remove_file(&go).unwrap();
    assert!(counter.wait().unwrap().success(), "a number that was written is gone");
}
