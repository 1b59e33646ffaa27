//! Sleeping until something is to be done.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use discnice_sys::{deadline, time};
use discnice_units::{Moment, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::tuning;

/// Waits for time, for held threads that stop or end (SIGCHLD), for requests to end, and for
/// descriptors.
#[derive(Debug)]
pub struct Reactor {
    signals: UnixStream,
    ended: Arc<AtomicBool>,
}

impl Reactor {
    /// From now on these signals of this process end it in an orderly way only.
    ///
    /// # Errors
    /// Descriptors are short.
    pub fn new() -> io::Result<Self> {
        let (signals, wake) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
        }
        for signal in [SIGCHLD, SIGHUP, SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        // Sleeps of less than a millisecond are meant. PR_SET_TIMERSLACK, prctl(2).
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1000));
        // And to wake up in time on a busy machine: what a look comes too late for has escaped.
        let _ = discnice_sys::process::ask_for_short_slices(tuning::looks::PROCESSOR_SLICE.0);
        Ok(Self { signals, ended })
    }

    /// Whether a signal asked to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits until `until`, or until a signal comes, or until one of `others` can be read; returns
    /// which of them can.
    pub fn wait(&mut self, until: Moment, others: &[BorrowedFd<'_>]) -> Vec<bool> {
        let mut until = until;
        if deadline::is_armed() {
            deadline::renew();
            until = until.min(time::now().plus(deadline::OFTEN));
        }
        let rest = until.since(time::now());
        let timeout = Timespec {
            tv_sec: (rest.0 / Nanos::SECOND.0).cast_signed(),
            tv_nsec: (rest.0 % Nanos::SECOND.0).cast_signed(),
        };
        let own = self.signals.as_fd();
        let mut fds: Vec<PollFd<'_>> = std::iter::once(own)
            .chain(others.iter().copied())
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // Interrupted by one of the signals: it is in the pipe by now.
        let _ = poll(&mut fds, Some(&timeout));
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.first() == Some(&true) {
            let mut bytes = [0; 256];
            while matches!(self.signals.read(&mut bytes), Ok(256)) {}
        }
        ready.into_iter().skip(1).collect()
    }
}
