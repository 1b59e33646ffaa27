//! Sockets are held to a class's network thresholds, in whatever way a program uses them, and an
//! event loop neither spins nor hangs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use discnice_tests::guest::Compiler;
use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip, together};

/// The limit, in bytes a second.
const RATE: f64 = 2e6;
const SECONDS: f64 = 2.0;
/// A job may begin with this much time's worth: the credit, and a portion that is under way.
const START: f64 = 0.060;
/// A job that always has something to move gets this share.
const LEAST: f64 = 0.95;
/// So many guests are held at a time, each in a class of its own: they mostly wait.
const TOGETHER: usize = 3;
/// The buffers of a guest's recvmsg(2), which is never cut.
const MESSAGE: f64 = 400_000.0;

/// A server that sends and receives as fast as it can; its port, over TCP and UDP.
fn server() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).expect("the same port");
        thread::spawn(move || while datagrams.recv(&mut [0; 2000]).is_ok() {});
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = stream.try_clone().expect("a descriptor");
                thread::spawn(move || send(stream));
                thread::spawn(move || receive(receiver));
            }
        });
        port
    })
}

fn send(mut stream: TcpStream) {
    while stream.write_all(&[b'x'; 65536]).is_ok() {}
}

fn receive(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 20];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// A guest moves bytes in one way for some seconds.
struct Moved {
    bytes: f64,
    seconds: f64,
    /// How often it was told that its socket is ready.
    told: f64,
    /// Milliseconds of processor time.
    cpu: f64,
}

impl Moved {
    fn of(outcome: &Outcome) -> Self {
        let text = outcome.text();
        let numbers: Vec<f64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [bytes, seconds, told, cpu] = numbers[..] else { panic!("{outcome:?}") };
        Self { bytes, seconds, told, cpu }
    }

    fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }
}

fn guest(folder: &Path) -> Option<PathBuf> {
    Compiler::new(folder).map(|compiler| compiler.compile("sockets.c"))
}

fn measure(guest: &Path, way: &str, port: &str, limits: &[&str]) -> Moved {
    let mut command = product::discnice(["run"]);
    command.args(limits).arg("--").arg(guest).args([way, port, &SECONDS.to_string()]);
    Moved::of(&run(&mut command).succeeded())
}

/// Measures, and once more if the machine seems to have done something else meanwhile: that makes
/// a job slower, never faster.
fn assert_way(guest: &Path, way: &str, port: &str, limits: &[&str], rate: f64) {
    let mut moved = measure(guest, way, port, limits);
    if moved.rate() < LEAST * rate {
        moved = measure(guest, way, port, limits);
    }
    assert_held(way, &moved, rate);
}

fn assert_held(way: &str, moved: &Moved, rate: f64) {
    let whole = if way == "recvmsg" { MESSAGE } else { 0.0 };
    let most = rate * (moved.seconds + START) + whole;
    assert!(moved.bytes <= most, "{way}: {} of {most} bytes", moved.bytes);
    assert!(moved.rate() >= LEAST * rate, "{way}: {:.0} bytes a second", moved.rate());
}

/// Calls that may wait.
const BLOCKING: &[&str] = &[
    "recv", "send", "read", "write", "fread", "splice", "readv", "writev", "recvmsg", "sendmsg",
    "sendfile", "datagram",
];
/// Loops that wait until the socket is ready, and one that asks again and again.
const LOOPS: &[&str] = &[
    "poll-in",
    "poll-out",
    "select-in",
    "select-out",
    "level-in",
    "level-out",
    "edge-in",
    "edge-out",
    "oneshot-in",
    "oneshot-out",
    "retry-in",
    "retry-out",
];
/// Calls by their numbers, and such as the kernel alone knows how much they move.
const UNUSUAL: &[&str] = &[
    "whole-file",
    "dprintf",
    "checked-dprintf",
    "not-waiting-in",
    "not-waiting-out",
    "number-flags-in",
    "number-flags-out",
    "number-many-in",
    "number-many-out",
    "number-file",
    "number-pipe",
];

/// Does `check` for each of these ways, a few at a time.
fn for_each<'a>(ways: impl Iterator<Item = &'a &'a str> + Send, check: impl Fn(&str) + Sync) {
    together::each(&[(); TOGETHER], ways, |(), way| check(way));
}

//= rate-windows/3.2-hooks
//= rate-windows/5-network
#[test]
fn every_way_to_send_or_receive_is_held() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = server().to_string();
    for_each(BLOCKING.iter().chain(LOOPS), |way| {
        assert_way(&guest, way, &port, &["--net", "2MB", "--net-loopback"], RATE);
    });
}

#[test]
fn calls_by_number_and_without_bounds_are_held() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = server().to_string();
    together::each(&[(); UNUSUAL.len()], UNUSUAL.iter(), |(), way| {
        let moved = measure(&guest, way, &port, &["--net", "2MB", "--net-loopback"]);
        let most = RATE * (moved.seconds + START) + MESSAGE;
        assert!(moved.bytes <= most, "{way}: {} of {most} bytes", moved.bytes);
        assert!(moved.rate() >= RATE / 10.0, "{way}: {:.0} bytes a second", moved.rate());
    });
}

#[test]
fn loops_neither_spin_nor_hang() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = server().to_string();
    for_each(LOOPS.iter(), |way| {
        let moved = measure(&guest, way, &port, &["--net", "2MB", "--net-loopback"]);
        assert!(moved.told / moved.seconds < 400.0, "{way}: told {} times", moved.told);
        assert!(moved.cpu < 60.0, "{way}: {} ms of processor time", moved.cpu);
    });
}

#[test]
fn traffic_within_the_machine_is_free_unless_asked_for() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = server().to_string();
    for (way, port) in [("recv", port.clone()), ("send", format!(":{port}")), ("datagram", port)] {
        let moved = measure(&guest, way, &port, &["--net", "100k"]);
        assert!(moved.rate() > 2e6, "{way} {port}: {:.0} bytes a second", moved.rate());
    }
}

#[test]
fn ipv4_within_ipv6_is_held_as_well() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = format!(":{}", server());
    assert_way(&guest, "recv", &port, &["--net-down", "2MB", "--net-loopback"], RATE);
}

//= rate-windows/1-hosting
//= rate-windows/5.2-clocking
#[test]
fn each_direction_has_its_own_threshold() {
    let folder = product::folder();
    let Some(guest) = guest(folder.path()) else { skip!("no C compiler") };
    let port = server().to_string();
    let limits = ["--net-up", "2MB", "--net-down", "1MB", "--net-loopback"];
    assert_way(&guest, "send", &port, &limits, RATE);
    assert_way(&guest, "edge-in", &port, &limits, 1e6);
}
