//! What a supervised call costs, in nanoseconds: the fastest and the median of 60 rounds, which the ways take in
//! turn.
//!
//! - `bare`: without a filter;
//! - `answered`: below the same filter, but the receiver of its calls only lets them go on: the
//!   kernel's part, two switches of the processor between processes;
//! - `supervised`: by our supervisor.
//!
//! `cargo run --release -p discnice-supervisor --example cost [FILE]`
#![allow(
    unsafe_code,
    reason = "a class of memory of our own, and a descriptor with a number of our own"
)]

use std::alloc::{Layout, alloc_zeroed};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use discnice_ledger::Class;
use discnice_supervisor::{Reach, filter};
use discnice_sys::process;
use discnice_sys::seccomp::{self, Notification};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

const ROUNDS: usize = 60;
const CALLS: usize = 2000;
const WAYS: [&str; 3] = ["bare", "answered", "supervised"];
const WORK: [&str; 3] = ["pread 0 B", "pread 4 KiB", "getpid"];
/// Number of a guest's listener, for the process that answers it.
const LISTENER: i32 = 100;

fn mean(call: impl Fn()) -> f64 {
    let begun = Instant::now();
    (0..CALLS).for_each(|_| call());
    begun.elapsed().as_nanos() as f64 / CALLS as f64
}

fn round(file: &File) -> [f64; WORK.len()] {
    let read = |length| {
        move || {
            let mut buffer = [0; 4096];
            let _ = file.read_at(&mut buffer[..length], 0);
        }
    };
    let id = || {
        let _ = process::id();
    };
    [mean(read(0)), mean(read(4096)), mean(id)]
}

/// Below the filter, without a supervisor of ours.
fn install() -> Result<(), Box<dyn Error>> {
    seccomp::renounce_privileges().map_err(|errno| format!("{errno:?}"))?;
    let listener = seccomp::install(&filter::program(Reach::All)).map_err(|e| format!("{e:?}"))?;
    // SAFETY: nothing of this program has that number.
    unsafe { libc::dup2(listener, LISTENER) };
    Ok(())
}

fn supervise() -> Result<(), Box<dyn Error>> {
    let layout = Layout::from_size_align(Class::SIZE, 4096)?;
    // SAFETY: the size is not zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or("no memory")?;
    // SAFETY: fresh memory of the right size, never freed.
    let class = unsafe { Class::create(start, Class::SIZE, 1, b"cost", 0) };
    let class = class.map_err(|foreign| foreign.to_string())?;
    Ok(discnice_supervisor::enter(class, None, Reach::All, |_| ())?)
}

/// One round for each line that is read.
fn guest(way: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    match way {
        "answered" => install()?,
        "supervised" => supervise()?,
        _ => {}
    }
    let mut line = String::new();
    while stdin().read_line(&mut line)? > 0 {
        let [nothing, page, id] = round(&file);
        println!("{nothing} {page} {id}");
        stdout().flush()?;
    }
    Ok(())
}

/// Lets every call of a guest go on at once.
fn answer(guest: &str) -> Result<(), Box<dyn Error>> {
    let pid = Pid::from_raw(guest.parse()?).ok_or("no process")?;
    let target = pidfd_open(pid, PidfdFlags::empty())?;
    let found = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(2));
        pidfd_getfd(&target, LISTENER, PidfdGetfdFlags::empty()).ok()
    });
    let listener: OwnedFd = found.ok_or("no listener, or descriptors may not be taken here")?;
    let _ = seccomp::take_turns(listener.as_raw_fd());
    loop {
        let mut call = Notification::default();
        if seccomp::receive(listener.as_raw_fd(), &mut call).is_ok() {
            let _ = seccomp::proceed(listener.as_raw_fd(), call.id);
        }
    }
}

struct Guest {
    process: Child,
    ask: ChildStdin,
    told: BufReader<ChildStdout>,
    rounds: Vec<Vec<f64>>,
}

impl Guest {
    fn start(way: &str, path: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["guest", way, path]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (ask, told) = (process.stdin.take(), process.stdout.take());
        let (ask, told) = (ask.ok_or("no pipe")?, BufReader::new(told.ok_or("no pipe")?));
        Ok(Self { process, ask, told, rounds: Vec::new() })
    }

    fn round(&mut self) -> Result<(), Box<dyn Error>> {
        writeln!(self.ask)?;
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        self.rounds.push(numbers);
        Ok(())
    }

    fn print(&self, work: usize) {
        let mut all: Vec<f64> =
            self.rounds.iter().filter_map(|round| round.get(work)).copied().collect();
        all.sort_by(f64::total_cmp);
        if let (Some(least), Some(median)) = (all.first(), all.get(all.len() / 2)) {
            print!("  {least:>8.0} {median:>8.0}");
        }
    }
}

fn measure(path: &str) -> Result<(), Box<dyn Error>> {
    let mut guests =
        WAYS.iter().map(|way| Guest::start(way, path)).collect::<Result<Vec<_>, _>>()?;
    let guest = guests[1].process.id().to_string();
    let mut answering = Command::new(std::env::current_exe()?).args(["answer", &guest]).spawn()?;
    let measured: Result<(), _> =
        (0..ROUNDS).try_for_each(|_| guests.iter_mut().try_for_each(Guest::round));
    // Without the process that answers it, a guest could not even exit by itself.
    let children = guests.iter_mut().map(|guest| &mut guest.process).chain([&mut answering]);
    for child in children {
        child.kill()?;
        child.wait()?;
    }
    measured?;
    println!("{:<12}{}", "", WAYS.map(|way| format!("  {way:>17}")).concat());
    for (work, name) in WORK.iter().enumerate() {
        print!("{name:<12}");
        guests.iter().for_each(|guest| guest.print(work));
        println!();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["guest", way, path] => guest(way, path),
        ["answer", process] => answer(process),
        [path] => measure(path),
        _ => measure(&std::env::current_exe()?.display().to_string()),
    }
}
