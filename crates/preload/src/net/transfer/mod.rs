//! The shape of a call that sends or receives.

mod turns;

use core::ffi::c_int;

use discnice_ledger::trace::Why;
use discnice_regulator::{Flow, LimitsVersion, Linux, Regulator, Turn};
use discnice_sys::Errno;

use crate::engine;
use crate::net::socket::Socket;
use crate::net::{classify, pacing, socket, steering, told};
use crate::real::{errno, set_errno};

/// Calls of these kinds move nothing that counts.
const FREE: c_int = libc::MSG_PEEK | libc::MSG_OOB | libc::MSG_ERRQUEUE;

/// The kernel numbers such calls for the program, so they cannot be cut. Documentation/networking/msg_zerocopy.rst
const NUMBERED: c_int = libc::MSG_ZEROCOPY;

/// A call that sends or receives.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The socket.
    pub fd: i32,
    /// Direction of the transfer.
    pub flow: Flow,
    /// Bytes that it asks for.
    pub count: usize,
    /// `MSG_DONTWAIT` and the like.
    pub flags: c_int,
    /// Set if it cannot be cut, for example because only the kernel knows its parts.
    pub whole: bool,
}

/// Sends or receives. `piece(done, length)` makes the real call for a part.
#[inline(always)]
pub fn transfer(call: Call, piece: impl Fn(usize, usize) -> isize) -> isize {
    if !engine::minds_traffic() {
        told::mind();
        return piece(0, call.count);
    }
    regulated(call, |_| false, |result| result.max(0) as u64, piece)
}

/// Sends or receives messages. From the result of a successful call, `moved` tells the bytes and
/// `local` says if they stayed within the machine.
#[inline(always)]
pub fn message(
    call: Call,
    local: impl Fn(isize) -> Option<bool>,
    moved: impl Fn(isize) -> u64,
    piece: impl Fn() -> isize,
) -> isize {
    if !engine::minds_traffic() {
        told::mind();
        return piece();
    }
    let whole = Call { whole: true, ..call };
    regulated_message(whole, local, moved, |_, _| piece())
}

#[inline(never)]
fn regulated_message(
    call: Call,
    local: impl Fn(isize) -> Option<bool>,
    moved: impl Fn(isize) -> u64,
    piece: impl Fn(usize, usize) -> isize,
) -> isize {
    let note = |result: isize| {
        let local = if result >= 0 { local(result) } else { None };
        match (local, socket(call.fd)) {
            (Some(local), Some(socket)) => {
                socket.note_local(local);
                local && !engine::counts_loopback()
            }
            _ => false,
        }
    };
    regulated(call, note, moved, piece)
}

#[inline(never)]
fn regulated(
    call: Call,
    is_free: impl Fn(isize) -> bool,
    moved: impl Fn(isize) -> u64,
    piece: impl Fn(usize, usize) -> isize,
) -> isize {
    let Some(session) = Session::begin(&call) else {
        let result = piece(0, call.count);
        is_free(result);
        return result;
    };
    let before = errno();
    let mut done = 0;
    loop {
        let rest = call.count - done;
        let grant = match session.admit(rest) {
            Ok(grant) => grant,
            Err(_) if done > 0 => return done as isize,
            Err(Errno(error)) => {
                set_errno(error);
                return -1;
            }
        };
        let length = if session.cuts { rest.min(grant.most as usize) } else { rest };
        let result = piece(done, length);
        let passed = if is_free(result) { 0 } else { moved(result) };
        session.settle(grant.reserved, passed);
        if result < 0 && done > 0 {
            set_errno(before);
            return done as isize;
        }
        if result < 0 {
            return result;
        }
        done += result as usize;
        if !session.cuts || (result as usize) < length || done >= call.count || !session.goes_on() {
            return done as isize;
        }
    }
}

/// What a call may do next.
#[derive(Debug, Clone, Copy)]
struct Grant {
    /// Bytes that are reserved.
    reserved: u64,
    /// Bytes that may pass.
    most: u64,
}

impl Grant {
    /// Lets as many bytes pass as are reserved.
    const fn all(bytes: u64) -> Self {
        Self { reserved: bytes, most: bytes }
    }
}

/// One call under regulation.
struct Session<'a> {
    call: &'a Call,
    regulator: Regulator<'static, Linux>,
    socket: &'static Socket,
    limits: LimitsVersion,
    is_connection: bool,
    cuts: bool,
}

impl<'a> Session<'a> {
    /// `None` when the call is free.
    fn begin(call: &'a Call) -> Option<Self> {
        if call.flags & FREE != 0 || call.count == 0 {
            return None;
        }
        let file = classify(call.fd)?;
        if !file.is_socket() {
            return None;
        }
        let socket = socket(call.fd)?;
        let kind = socket.kind(call.fd)?;
        if kind.exempt {
            file.exempt();
            return None;
        }
        let regulator = engine::regulator()?;
        if kind.local && !regulator.counts_loopback() || kind.stream && !kind.connected {
            return None;
        }
        if kind.stream
            && let Some(class) = engine::class()
        {
            steering::follow(call.fd, socket, class.path_shares(), regulator.now());
        }
        if call.flow == Flow::Up && kind.stream && regulator.yields() {
            socket.shorten(call.fd);
        }
        let limits = regulator.limits();
        let whole = call.whole || call.flags & NUMBERED != 0;
        let (is_connection, cuts) = (kind.stream, kind.stream && !whole);
        Some(Self { call, regulator, socket, limits, is_connection, cuts })
    }

    /// Charges what passed.
    fn settle(&self, reserved: u64, passed: u64) {
        if self.call.flow == Flow::Down {
            let waiting = || discnice_sys::socket::available(self.call.fd).unwrap_or(0);
            self.regulator.note_arrived(waiting);
        }
        let thread = &crate::thread::local().thread;
        thread.proceed(Why::Turn, isize::try_from(passed).unwrap_or(0));
        thread.outcomes.add(reserved, passed);
        self.regulator.settle_traffic(self.call.flow, reserved, passed);
    }

    /// Returns true if the program wants the call not to block.
    fn is_impatient(&self) -> bool {
        self.call.flags & libc::MSG_DONTWAIT != 0
            || discnice_sys::file::flags(self.call.fd)
                .is_ok_and(|flags| flags & libc::O_NONBLOCK != 0)
    }

    /// Returns true if a call that was cut short is continued as the kernel would: one that sends
    /// blocks until all is sent, one that does not block does what it can.
    fn goes_on(&self) -> bool {
        self.call.flow == Flow::Up
            || self.call.flags & libc::MSG_WAITALL != 0
            || self.is_impatient()
    }

    /// Lets up to `rest` bytes pass.
    fn admit(&self, rest: usize) -> Result<Grant, Errno> {
        let flow = self.call.flow;
        if flow == Flow::Up && self.is_connection {
            pacing::follow(self.call.fd, self.socket, self.regulator.traffic_rate(flow));
        }
        if self.socket.parked().contains(flow) {
            self.admit_parked()?;
        }
        let (granted, void) = self.socket.take_grant(flow, self.regulator.now());
        self.regulator.settle_traffic(flow, void, 0);
        if granted > 0 {
            return Ok(self.share(granted, rest));
        }
        // How much there is to receive is not known: what did not come is given back.
        let most = self.regulator.traffic_portion(flow);
        let expected = self.cuts || flow == Flow::Down;
        let want = if expected { most.min(rest as u64) } else { rest as u64 };
        match self.regulator.reserve_traffic(flow, want) {
            Turn::Now => Ok(Grant::all(want)),
            turn => self.take_turns(turn, want, rest),
        }
    }

    /// What this call gets of a turn. What has come already will be received by one call or another,
    /// so one turn is enough for the small reads of many; what will be sent is not known.
    fn share(&self, granted: u64, rest: usize) -> Grant {
        let left = granted.saturating_sub(rest as u64);
        let parked = self.socket.parked().contains(self.call.flow);
        if left == 0 || parked || self.call.flow == Flow::Up || !self.cuts {
            return Grant::all(granted);
        }
        self.socket.keep_grant(self.call.flow, left, self.regulator.now());
        Grant::all(granted - left)
    }
}
