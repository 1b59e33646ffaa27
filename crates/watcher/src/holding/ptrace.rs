//! Standing still by ptrace(2): no signal, nothing that the parent or a shell could see.
//!
//! A process is traced only while it is held, so that a debugger can have it in between, and so that
//! its signals and stops are its own affair for the rest of the time. A thread that is about to
//! receive a signal, or that job control has stopped, is let go at once.

use std::collections::BTreeMap;

use discnice_sys::Errno;
use discnice_sys::procfs;
use discnice_sys::trace::{self, Stop, Thread};

use super::hold::{Grip, Hold, Means, Refused};
use crate::process;

/// How a seized thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was told to stop.
    Moving,
    Stopped,
}

/// A hold by ptrace(2).
#[derive(Debug)]
pub struct Freeze {
    id: u32,
    threads: BTreeMap<u32, State>,
}

impl Freeze {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self { id, threads: BTreeMap::new() }
    }

    /// Takes hold of one thread.
    fn take(&mut self, thread: u32) -> Result<(), Refused> {
        match trace::seize(thread) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(()),
            Err(_)
                if process::tracer(self.id.cast_signed()).is_some() && self.threads.is_empty() =>
            {
                return Err(Refused::Traced);
            }
            Err(_) if self.threads.is_empty() => return Err(Refused::Forbidden),
            // One thread of many: a debugger is just taking them over.
            Err(_) => return Ok(()),
        }
        self.threads.insert(thread, State::Moving);
        // Gone meanwhile: `tend` finds out.
        let _ = trace::interrupt(thread);
        Ok(())
    }

    /// Takes hold of the threads that are in one of these states.
    fn take_all(&mut self, wanted: &[u8]) -> Result<Grip, Refused> {
        self.tend();
        let threads: Vec<u32> =
            process::threads(self.id).filter(|thread| !self.threads.contains_key(thread)).collect();
        let shared = threads.len() + self.threads.len() > 1;
        let mut asleep = false;
        for thread in threads {
            match procfs::stat(thread) {
                Some(stat) if stat.flags & process::WORKER != 0 => {}
                Some(stat) if wanted.contains(&stat.state) => self.take(thread)?,
                Some(_) if shared && self.goes_on_undisturbed(thread) => self.take(thread)?,
                Some(_) => asleep = true,
                None => {}
            }
        }
        let moving = self.threads.values().any(|state| *state == State::Moving);
        Ok(if asleep || moving || self.threads.is_empty() { Grip::Loose } else { Grip::Firm })
    }

    /// Whether a thread waits for another one of its process, or for a worker that the kernel has there (io_uring), which may
    /// wake it just before it is stopped itself, in a call that goes on after a stop as if nothing had been.
    fn goes_on_undisturbed(&self, thread: u32) -> bool {
        process::call(self.id, thread).is_some_and(|call| match call.number {
            libc::SYS_futex => true,
            libc::SYS_io_uring_enter => {
                trace::is_resumed(call.number, |place| call.arguments.get(place).copied())
            }
            _ => false,
        })
    }

    /// What to remember of a seized thread, which was `known` to stand like this.
    fn look(thread: u32, known: State) -> Option<State> {
        match trace::look(thread) {
            Ok(Thread::Moving) => Some(State::Moving),
            Ok(Thread::Stopped(Stop::Interrupted)) => Some(State::Stopped),
            Ok(Thread::Stopped(Stop::JobControl)) => {
                let _ = trace::detach(thread, 0);
                None
            }
            Ok(Thread::Stopped(Stop::Signal(signal))) => {
                let _ = trace::detach(thread, signal);
                None
            }
            Ok(Thread::Ended) => {
                trace::reap(thread);
                None
            }
            Err(Errno(libc::ECHILD)) => None,
            // What cannot be looked at is let go if it stands, and else looked at again.
            Err(_) => trace::detach(thread, 0).is_err().then_some(known),
        }
    }
}

impl Hold for Freeze {
    fn means(&self) -> Means {
        Means::Ptrace
    }

    fn press(&mut self) -> Result<Grip, Refused> {
        // Runs, or waits for a disk or its like.
        self.take_all(b"RD")
    }

    fn press_all(&mut self) -> Result<Grip, Refused> {
        self.take_all(b"RDS")
    }

    fn tend(&mut self) {
        self.threads.retain(|thread, state| match Self::look(*thread, *state) {
            Some(now) => {
                if (*state, now) == (State::Moving, State::Stopped) {
                    // At once: if we are killed the thread goes on with what it has in its registers.
                    trace::resume_call(*thread);
                }
                *state = now;
                true
            }
            None => false,
        });
    }

    fn release(&mut self) -> bool {
        self.tend();
        self.threads.retain(|thread, state| {
            *state == State::Moving || trace::detach(*thread, 0).is_err() && !trace::reap(*thread)
        });
        self.threads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
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
        use std::process::Stdio;
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
}
