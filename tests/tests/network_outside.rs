//! TCP connections of programs without the library are held to a class's network thresholds from outside.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::{Group, run};
use discnice_tests::{product, skip, together};

/// The limit, in bytes a second.
const LIMIT: f64 = 8e6;
/// So many guests are held at a time: they mostly wait.
const TOGETHER: usize = 3;

/// A server at the other end of a link of so many bytes a second, in each direction, and what it has moved.
struct Link {
    port: u16,
    moved: Arc<[AtomicU64; 2]>,
}

impl Link {
    const SPEED: u64 = 100 << 20;
    const PIECE: usize = 64 << 10;

    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let moved = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let counts = Arc::clone(&moved);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut receiver = stream.try_clone().expect("a descriptor");
                let [up, down] = [Arc::clone(&counts), Arc::clone(&counts)];
                thread::spawn(move || {
                    Self::pass(|| stream.write(&[b'x'; Self::PIECE]), &down[1]);
                });
                thread::spawn(move || {
                    Self::pass(|| receiver.read(&mut [0; Self::PIECE]), &up[0]);
                });
            }
        });
        Self { port, moved }
    }

    /// Moves pieces at the speed of the link until the other end has gone.
    fn pass(mut piece: impl FnMut() -> std::io::Result<usize>, moved: &AtomicU64) {
        while let Ok(count @ 1..) = piece() {
            moved.fetch_add(count as u64, Ordering::Relaxed);
            thread::sleep(Duration::from_nanos(count as u64 * 1_000_000_000 / Self::SPEED));
        }
    }

    fn moved(&self, direction: usize) -> f64 {
        self.moved[direction].load(Ordering::Relaxed) as f64
    }

    /// Bytes a second that pass, once what passes at first is paid for.
    fn rate(&self, direction: usize) -> f64 {
        thread::sleep(Duration::from_millis(1500));
        let (before, begun) = (self.moved(direction), Instant::now());
        thread::sleep(Duration::from_secs(3));
        (self.moved(direction) - before) / begun.elapsed().as_secs_f64()
    }
}

/// Whether a rate is what the limit allows, for programs that are held after the fact: what passes within three seconds
/// depends on when the link's own buffers fill up, and on the daemon's getting a processor. Without a limit it is ten times
/// the limit.
fn is_held(rate: f64) -> bool {
    (0.5 * LIMIT..2.0 * LIMIT).contains(&rate)
}

/// One test at a time: several links at full speed leave the daemon no processor.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

//= rate-windows/5-network
#[test]
fn connections_of_programs_without_the_library_are_held() {
    let _alone = alone();
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let Ok(guest) = compiler.compile_with("sockets.c", &["-static"]) else {
        skip!("no static libc")
    };
    let shell = format!("{} \"$@\"; true", guest.display());
    let ways = [("send", 0), ("recv", 1), ("edge-in", 1)];
    let all = [("auto", false), ("freeze", false), ("auto", true)];
    let jobs = all.iter().flat_map(|one| ways.iter().map(move |way| (one, way)));
    together::each(&[(); TOGETHER], jobs, |(), ((mechanism, is_child), (way, direction))| {
        let link = Link::new();
        let mut command = product::discnice(["run", "--strict", "--net", "8MB"]);
        command.args(["--net-loopback", "--mechanism", mechanism, "--"]);
        if *is_child {
            command.args(["sh", "-c", &shell, "sh"]);
        } else {
            command.arg(&guest);
        }
        command.args([*way, &link.port.to_string(), "20"]);
        let job = Group::start_silent(&mut command);
        let rate = link.rate(*direction);
        drop(job);
        let what = format!("{mechanism}, {way}, child {is_child}: {:.2} MB/s", rate / 1e6);
        assert!(is_held(rate), "{what}");
    });
}

#[test]
fn connections_of_attached_programs_are_held_until_they_are_detached() {
    let _alone = alone();
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("sockets.c");
    together::each(&[(); 2], [("send", 0), ("recv", 1)], |(), (way, direction)| {
        let (link, class) = (Link::new(), Class::new("1G"));
        let mut bare = product::as_user(&guest);
        let job = Group::start_silent(bare.args([way, &link.port.to_string(), "30"]));
        thread::sleep(Duration::from_millis(1200));
        let words = ["attach", "--background", "--class", class.name(), "--net", "8MB"];
        let mut attach = product::discnice(words);
        run(attach.args(["--net-loopback", &job.id().to_string()])).succeeded();
        let rate = link.rate(direction);
        assert!(is_held(rate), "{way}: {:.2} MB/s", rate / 1e6);
        run(&mut product::discnice(["detach", &job.id().to_string()])).succeeded();
        let rate = link.rate(direction);
        assert!(rate > 40e6, "{way}, detached: {:.2} MB/s", rate / 1e6);
    });
}

/// `discnice` with a daemon of its own, both without these system calls.
fn without(calls: &[i64], refused: &Path, alone: &Path) -> Command {
    run(product::as_user("mkdir").args(["-p", "-m", "700"]).arg(alone)).succeeded();
    let calls: Vec<String> = calls.iter().map(i64::to_string).collect();
    let mut command = product::as_user("env");
    command.arg(format!("XDG_RUNTIME_DIR={}", alone.display())).arg(refused);
    command.args([calls.join(","), libc::EPERM.to_string()]).arg(product::program());
    command
}

/// As where Yama's `ptrace_scope` is not 0, and in many containers.
#[test]
fn connections_that_cannot_be_borrowed_are_held_by_what_the_kernel_tells_of_them() {
    let _alone = alone();
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let (refused, alone) = (compiler.compile("refused.c"), folder.path().join("run"));
    let Ok(guest) = compiler.compile_with("sockets.c", &["-static"]) else {
        skip!("no static libc")
    };
    together::each(&[(); 2], [("send", 0), ("recv", 1)], |(), (way, direction)| {
        let link = Link::new();
        let mut command = without(&[libc::SYS_pidfd_getfd], &refused, &alone);
        command.args([
            "run",
            "--strict",
            "--mechanism",
            "freeze",
            "--net",
            "8MB",
            "--net-loopback",
        ]);
        command.arg("--").arg(&guest).args([way, &link.port.to_string(), "40"]);
        let job = Group::start_silent(&mut command);
        // What passes at first fills the buffers, as do bursts.
        thread::sleep(Duration::from_secs(4));
        let before = link.moved(direction);
        thread::sleep(Duration::from_secs(10));
        let rate = (link.moved(direction) - before) / 10.0;
        drop(job);
        assert!(is_held(rate), "{way}: {:.2} MB/s", rate / 1e6);
    });
}

#[test]
fn it_is_told_where_no_connection_is_seen() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let (refused, alone) = (compiler.compile("refused.c"), folder.path().join("run"));
    let Ok(reader) = compiler.compile_with("reader.c", &["-static"]) else {
        skip!("no static libc")
    };
    let calls = [libc::SYS_pidfd_getfd, libc::SYS_sendto];
    let mut command = without(&calls, &refused, &alone);
    let words = ["run", "--net", "1M", "--", reader.to_str().expect("UTF-8"), "/etc/passwd"];
    let told = run(command.args(words));
    // Much else needs that call, too, which is told of in lines of its own.
    let says = |line: &str| line.starts_with("discnice: --net does not hold: ");
    assert!(told.status == Some(0) && told.complaint().lines().any(says), "{told:?}");
    let seen = run(&mut product::discnice(words));
    assert_eq!((seen.status, &*seen.complaint()), (Some(0), ""), "{seen:?}");
}
