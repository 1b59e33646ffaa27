//! What a call does until its turn: it joins the queue, and waits or parks its socket.

use discnice_regulator::decision::{self, Decision};
use discnice_regulator::{Flow, Turn, Woken};
use discnice_sys::{Errno, signal};
use discnice_units::{Moment, Nanos};

use super::{Call, Grant, Session};
use crate::net::parked;

/// A program that calls a parked socket so often has not heard that it is not ready; then its calls
/// last a moment, so that it neither spins nor wakes up for every turn.
const EARLY: u32 = 8;
const MOMENT: Nanos = Nanos::from_millis(20);

const AGAIN: Errno = Errno(libc::EAGAIN);

impl Session<'_> {
    /// Joins the queue. A place in it that is too large would be lost to all that come later.
    #[cold]
    pub(super) fn take_turns(
        &self,
        mut turn: Turn,
        mut want: u64,
        rest: usize,
    ) -> Result<Grant, Errno> {
        let Call { fd, flow, .. } = *self.call;
        let impatient = self.is_impatient();
        if flow == Flow::Down {
            let available = discnice_sys::socket::available(fd).unwrap_or(want);
            if available == 0 && impatient {
                self.give_back(turn, want);
                // The kernel will say that there is nothing, or that there is no more.
                return Ok(Grant { reserved: 0, most: want });
            }
            let most = if self.cuts { self.regulator.traffic_portion(flow) } else { want };
            let here = available.min(most);
            if here > 0 && here != want {
                self.give_back(turn, want);
                want = here;
                turn = self.regulator.reserve_traffic(flow, want);
            }
        }
        let can_come_again = || self.socket.can_be_withheld();
        let granted = match decision::turn(turn, impatient, can_come_again) {
            Decision::Proceed(_) => Ok(want),
            Decision::WouldBlock => Err(self.park(turn, want)),
            _ if impatient => self.wait_once(turn, want),
            _ => self.wait(turn, want),
        };
        granted.map(|granted| self.share(granted, rest))
    }

    fn give_back(&self, turn: Turn, reserved: u64) {
        if !matches!(turn, Turn::AskAgain(_)) {
            self.regulator.settle_traffic(self.call.flow, reserved, 0);
        }
    }

    /// The flow is parked: its turn may have come.
    #[cold]
    pub(super) fn admit_parked(&self) -> Result<(), Errno> {
        let (flow, socket) = (self.call.flow, self.socket);
        let due = || parked::is_due(socket, flow, self.regulator.now(), self.limits);
        if !due() {
            if !self.is_impatient() {
                self.hold(socket.due(flow), None)?;
            } else if socket.note_early() < EARLY {
                return Err(AGAIN);
            } else {
                let (now, beat) = (self.regulator.now(), self.regulator.traffic_beat());
                let until = socket.due(flow).max(now.plus(beat)).min(now.plus(MOMENT));
                self.regulator.hold(self.limits, until);
                if !due() {
                    return Err(AGAIN);
                }
            }
        }
        parked::release_flow(self.call.fd, socket, flow);
        Ok(())
    }

    /// Parks the socket of a call that must not wait: the program will hear when it is ready again.
    #[cold]
    fn park(&self, turn: Turn, want: u64) -> Errno {
        let (due, granted) = place(turn, want);
        let Call { fd, flow, .. } = *self.call;
        parked::park(fd, self.socket, flow, due, granted, self.limits);
        self.regulator.note_held(due.since(self.regulator.now()));
        AGAIN
    }

    /// Waits until the turn of a call that must not wait, as nothing would tell the program when that
    /// comes.
    #[cold]
    fn wait_once(&self, turn: Turn, want: u64) -> Result<u64, Errno> {
        let (due, granted) = place(turn, want);
        let woken = self.regulator.hold(self.limits, due);
        if granted > 0 && woken != Woken::Interrupted {
            return Ok(granted);
        }
        self.regulator.settle_traffic(self.call.flow, granted, 0);
        Err(AGAIN)
    }

    /// A call that may wait does.
    #[cold]
    fn wait(&self, mut turn: Turn, want: u64) -> Result<u64, Errno> {
        let flow = self.call.flow;
        let timeout = discnice_sys::socket::timeout(self.call.fd, flow == Flow::Down);
        let end = timeout.ok().flatten().map(|timeout| self.regulator.now().plus(timeout));
        loop {
            if turn == Turn::Now {
                return Ok(want);
            }
            let (due, granted) = place(turn, want);
            let held = self.hold(due, end);
            if held == Ok(Held::Due) && granted > 0 {
                return Ok(granted);
            }
            self.regulator.settle_traffic(flow, granted, 0);
            held?;
            turn = self.regulator.reserve_traffic(flow, want);
        }
    }

    /// Sleeps until `due`, in a call that the kernel would end at `end` if the program set a
    /// timeout. signal(7): any handler ends a call with a timeout, others only without
    /// `SA_RESTART`.
    fn hold(&self, due: Moment, end: Option<Moment>) -> Result<Held, Errno> {
        let until = end.map_or(due, |end| end.min(due));
        let limits = self.regulator.limits();
        loop {
            match self.regulator.hold(limits, until) {
                Woken::Due if until < due => return Err(AGAIN),
                Woken::Due | Woken::Abandoned => return Ok(Held::Due),
                Woken::Changed => return Ok(Held::Changed),
                Woken::Interrupted if end.is_some() || signal::any_interrupts() => {
                    return Err(Errno::INTR);
                }
                Woken::Interrupted => {}
            }
        }
    }
}

/// When a turn comes, and how many of the bytes that were asked for are reserved until then.
fn place(turn: Turn, want: u64) -> (Moment, u64) {
    match turn {
        Turn::Now => (Moment::FIRST, want),
        Turn::At(start) => (start, want),
        Turn::AskAgain(at) => (at, 0),
    }
}

/// How a wait ended that was not cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The turn has come.
    Due,
    /// The limits changed.
    Changed,
}
