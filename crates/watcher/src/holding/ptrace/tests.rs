use super::*;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn busy() -> Child {
    Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()
}

fn cpu(id: u32) -> u64 {
    procfs::stat(id).unwrap().cpu_ticks
}

/// Presses until all stands.
fn hold(freeze: &mut Freeze) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while freeze.press().unwrap() == Grip::Loose {
        assert!(Instant::now() < deadline, "{freeze:?} does not stand");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn release(freeze: &mut Freeze) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !freeze.release() {
        assert!(Instant::now() < deadline, "{freeze:?} does not let go");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn stands_and_goes_on() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(50));
    let mut freeze = Freeze::new(child.id());
    hold(&mut freeze);
    let before = cpu(child.id());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(cpu(child.id()), before, "it stands");
    release(&mut freeze);
    std::thread::sleep(Duration::from_millis(300));
    assert!(cpu(child.id()) > before, "it goes on");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What epoll_wait(2) returns, and errno, to a process that is held for a moment, gets a signal or not, and has
/// something to read after a second. It has one thread, which the signal is for.
#[cfg(target_arch = "x86_64")]
fn waits(limit: i32, signal: Option<i32>) -> String {
    use std::io::{BufRead, BufReader};
    let script = format!(
        "import ctypes, os, select, signal, time\n\
         signal.signal(signal.SIGUSR1, lambda *_: None)\n\
         wait, events = ctypes.CDLL(None, use_errno=True).epoll_wait, ctypes.create_string_buffer(64)\n\
         queue, (reader, writer) = select.epoll(), os.pipe()\n\
         queue.register(reader)\n\
         if os.fork() == 0: os._exit(time.sleep(1) or os.write(writer, b'x') - 1)\n\
         print(wait(queue.fileno(), events, 1, {limit}), ctypes.get_errno())"
    );
    let mut command = Command::new("python3");
    let mut child = command.args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let waiting = || process::call(child.id(), child.id()).map(|call| call.number);
    let deadline = Instant::now() + Duration::from_secs(10);
    while waiting() != Some(libc::SYS_epoll_wait) {
        assert!(Instant::now() < deadline, "it does not wait");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut freeze = Freeze::new(child.id());
    while freeze.press_all().unwrap() == Grip::Loose {
        std::thread::sleep(Duration::from_millis(1));
    }
    if let Some(signal) = signal {
        // SAFETY: numbers only; the child is ours and has not been waited for.
        #[allow(unsafe_code, reason = "kill(2) has no safe wrapper here")]
        unsafe {
            libc::kill(child.id().cast_signed(), signal);
        }
    }
    release(&mut freeze);
    let told = lines.next().unwrap().unwrap();
    child.wait().unwrap();
    told
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_that_wait_go_on_unless_a_signal_is_handled() {
    assert_eq!(waits(-1, None), "1 0", "it waits on");
    let interrupted = format!("-1 {}", libc::EINTR);
    assert_eq!(waits(-1, Some(libc::SIGUSR1)), interrupted);
    assert_eq!(waits(5000, None), interrupted, "it would wait for all of its time again");
}

#[test]
fn one_that_is_killed_while_held_is_reaped() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(20));
    let mut freeze = Freeze::new(child.id());
    hold(&mut freeze);
    child.kill().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(freeze.release(), "{freeze:?}");
    // Where the parent is the tracer too, what the tracer reaps is gone for the parent.
    assert!(child.try_wait().is_err(), "it was reaped");
}

#[test]
fn one_that_stands_is_not_taken_for_ended() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(20));
    let mut freeze = Freeze::new(child.id());
    hold(&mut freeze);
    let (has_ended, seen) = (trace::reap(child.id()), trace::look(child.id()));
    release(&mut freeze);
    let tracer = process::tracer(child.id().cast_signed());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!has_ended && seen == Ok(Thread::Stopped(Stop::Interrupted)), "{seen:?}");
    assert_eq!(tracer, None);
}

/// A process with two threads, of which one executes sleep(1), by a shell with many arguments, when it is told to: the first
/// one, or the other.
struct Executing(Child);

impl Executing {
    fn start(is_first: bool) -> Self {
        let script = "import os, sys, threading, time\n\
            def execute():\n \
             sys.stdin.readline()\n \
             os.execv('/bin/sh', ['sh', '-c', 'exec sleep 1000'] + ['x' * 100000] * 15)\n\
            def stay(): time.sleep(1000)\n\
            here, there = (execute, stay) if sys.argv[1] == 'true' else (stay, execute)\n\
            threading.Thread(target=there, daemon=True).start()\n\
            here()";
        let mut command = Command::new("python3");
        let command = command.args(["-c", script, &is_first.to_string()]).stdin(Stdio::piped());
        let process = Self(command.stdout(Stdio::null()).spawn().unwrap());
        let waits = || process::threads(process.id()).all(is_asleep);
        let are_two = || process::threads(process.id()).count() == 2;
        wait_until("it does not wait", || are_two() && waits());
        process
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn other_thread(&self) -> u32 {
        process::threads(self.id()).find(|thread| *thread != self.id()).unwrap()
    }

    fn tell(&mut self) {
        self.0.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
    }

    /// Makes sure that it goes on, and is not traced.
    fn check(&self) {
        wait_until("it stands for good", || process::name(self.id()) == b"sleep");
        assert_eq!(process::tracer(self.id().cast_signed()), None);
        wait_until("it stands", || is_asleep(self.id()));
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_asleep(thread: u32) -> bool {
    procfs::stat(thread).is_some_and(|stat| stat.state == b'S')
}

fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_thread_that_executes_a_program_while_it_is_seized_is_let_go() {
    for round in 0..20 {
        let mut process = Executing::start(false);
        let (mut freeze, other) = (Freeze::new(process.id()), process.other_thread());
        process.tell();
        // In some rounds before it is the first thread, in others after.
        std::thread::sleep(Duration::from_micros(round * 100));
        if freeze.take(other).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        release(&mut freeze);
        assert_eq!(process::tracer(process.id().cast_signed()), None, "round {round}");
        process.check();
    }
}

#[test]
fn a_thread_that_was_not_told_to_stop_as_it_executed_a_program_is_let_go() {
    let mut process = Executing::start(false);
    let (mut freeze, other) = (Freeze::new(process.id()), process.other_thread());
    trace::seize(other).unwrap();
    freeze.threads.insert(other, State::Moving);
    process.tell();
    wait_until("it does not execute", || process::name(process.id()) == b"sleep");
    release(&mut freeze);
    process.check();
}

#[test]
fn a_process_that_executes_a_program_is_not_waited_for() {
    let mut process = Executing::start(true);
    let (id, other) = (process.id(), process.other_thread());
    let (tell, told) = std::sync::mpsc::channel();
    let tracer = std::thread::spawn(move || {
        let mut freeze = Freeze::new(id);
        freeze.take(other).unwrap();
        tell.send(None).unwrap();
        // The first thread waits for the end of the other, which has ended when we have taken note of it.
        let waits = || freeze.is_executing(process::call(id, id).into_iter());
        wait_until("it does not execute", waits);
        tell.send(Some(freeze.take_new(b"RD"))).unwrap();
        release(&mut freeze);
    });
    assert_eq!(told.recv().unwrap(), None, "it is seized");
    process.tell();
    let grip = told.recv_timeout(Duration::from_secs(25));
    assert_eq!(grip, Ok(Some(Ok(Grip::Loose))), "its execve(2) and our seize wait for each other");
    tracer.join().unwrap();
    process.check();
}

#[test]
fn a_process_that_goes_on_without_its_first_thread_is_held() {
    let script = "import ctypes, sys, threading\n\
        def work():\n while True: pass\n\
        threading.Thread(target=work).start()\n\
        ctypes.CDLL(None).pthread_exit(None)";
    let mut child = Command::new("python3").args(["-c", script]).spawn().unwrap();
    let has_none = || procfs::stat(child.id()).is_some_and(|stat| stat.state == b'Z');
    wait_until("its first thread does not end", has_none);
    let pinned = process::pin(child.id().cast_signed());
    let (mut freeze, mut stands) = (Freeze::new(child.id()), false);
    for _ in 0..1000 {
        stands |= freeze.press() == Ok(Grip::Firm);
        std::thread::sleep(Duration::from_millis(1));
    }
    release(&mut freeze);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pinned.is_ok(), "{pinned:?}");
    assert!(stands, "it does not stand");
}

#[test]
fn a_process_that_is_traced_is_left_alone() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(20));
    let id = child.id();
    // Another thread of ours is another tracer.
    let (tell, told) = std::sync::mpsc::channel();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let tracer = std::thread::spawn(move || {
        trace::seize(id).unwrap();
        tell.send(()).unwrap();
        let _ = wait.recv();
    });
    told.recv().unwrap();
    assert_eq!(Freeze::new(id).press(), Err(Refused::Traced));
    done.send(()).unwrap();
    tracer.join().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}
