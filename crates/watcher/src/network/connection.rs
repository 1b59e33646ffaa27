//! One TCP connection of a member.

use std::os::fd::{AsRawFd, OwnedFd};

use discnice_regulator::Flow;
use discnice_sys::socket::{self, Machine};
use discnice_sys::tcp::{self, Info, WINDOW_MAX, WINDOW_MIN};
use discnice_units::{Moment, Nanos};

use super::diag::{Diag, Name, Told};
use super::paths::{self, Paths};
use super::shares::Shares;
use crate::member::Watched;
use crate::tuning;

/// A rate, a window and a buffer that we set leave this remainder, so that the next watcher knows them from a program's own.
const MARK: u64 = 77;
const MODULUS: u64 = 100;

const fn marked(value: u64) -> u64 {
    (value / MODULUS * MODULUS).saturating_add(MARK)
}

const fn is_marked(value: u64) -> bool {
    value % MODULUS == MARK
}

/// How a connection is looked at.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By a descriptor of its process, which is borrowed.
    Descriptor(i32),
    /// By asking the kernel, which can tell it nothing.
    Name(Name),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    process: u32,
    way: Way,
    cookie: u64,
    /// The machine at the other end; `None` for this one.
    peer: Option<[u8; 16]>,
    /// Bytes sent and received at the last look, and when that had changed.
    moved: [u64; 2],
    moved_at: [Option<Moment>; 2],
    /// The rate that the program itself set.
    own: u64,
    /// Set if the program itself, or an old kernel, keeps us from fixing the size of its receive buffer.
    keeps_buffer: bool,
    /// The rate, the window and the receive buffer that were set last; zero for none.
    set: (u64, u32, u32),
    /// Set if it is to keep to the limits of its class, as no library sees to that.
    pub(super) limited: bool,
}

/// What a socket is.
pub(super) enum Kind {
    /// A connection with another machine, or with this one if that counts.
    Connected(Connection),
    /// One that may become such a connection.
    Unconnected,
    /// Anything else.
    Other,
}

impl Connection {
    /// Finds out what a descriptor of a process is. What a connection has moved is as yet uncharged if it `is_new`.
    pub(super) fn of(
        (process, descriptor): (u32, i32),
        borrowed: &OwnedFd,
        is_new: bool,
        loopback: bool,
    ) -> Kind {
        let fd = borrowed.as_raw_fd();
        let Ok(info) = tcp::info(fd) else { return Kind::Other };
        if !info.is_open {
            return Kind::Unconnected;
        }
        let peer = match (socket::is_local(fd), socket::peer(fd)) {
            (Ok(true), _) if loopback => None,
            (Ok(false), Ok(Machine::Host(peer))) => Some(peer),
            _ => return Kind::Other,
        };
        let (Ok(cookie), Ok(pace)) = (tcp::cookie(fd), socket::pacing(fd)) else {
            return Kind::Other;
        };
        let moved = if is_new { [0; 2] } else { [info.sent, info.received] };
        let new = Self::new(process, Way::Descriptor(descriptor), cookie, peer);
        Kind::Connected(Self { moved, ..new }.of_predecessor(fd, pace))
    }

    /// A connection that the kernel told of, as [`Connection::of`].
    pub(super) fn told(process: u32, told: &Told, is_new: bool, loopback: bool) -> Kind {
        let peer = told.name.peer();
        if peer.is_none() && !loopback {
            return Kind::Other;
        }
        let new = Self::new(process, Way::Name(told.name), told.name.cookie(), peer);
        let moved = if is_new { [0; 2] } else { [told.info.sent, told.info.received] };
        Kind::Connected(Self { moved, ..new })
    }

    /// Tells what the program has set, at last this rate, from what a watcher that was killed has, which is to be undone.
    fn of_predecessor(self, fd: i32, pace: u64) -> Self {
        let ours = |value: Option<u32>| value.filter(|value| is_marked(u64::from(*value)));
        let own = if is_marked(pace) { socket::UNPACED } else { pace };
        let rate = if is_marked(pace) { pace } else { 0 };
        let window = ours(tcp::window(fd).ok()).unwrap_or(0);
        let is_fixed = socket::has_fixed_buffer(fd).unwrap_or(true);
        let buffer = ours(socket::buffer(fd).ok()).filter(|_| is_fixed).unwrap_or(0);
        let keeps_buffer = is_fixed && buffer == 0;
        Self { own, keeps_buffer, set: (rate, window, buffer), ..self }
    }

    /// A connection of which nothing is charged, and that cannot be told anything.
    fn new(process: u32, way: Way, cookie: u64, peer: Option<[u8; 16]>) -> Self {
        Self {
            process,
            way,
            cookie,
            peer,
            moved: [0; 2],
            moved_at: [None; 2],
            own: socket::UNPACED,
            keeps_buffer: true,
            set: (0, 0, 0),
            limited: false,
        }
    }

    /// Goes on where another descriptor of it was lost sight of, if it is one of this.
    pub(super) fn resume(self, lost: &Self) -> Self {
        if lost.cookie != self.cookie {
            return self;
        }
        Self { process: self.process, way: self.way, ..*lost }
    }

    /// The process that has it, or the first of them that was found.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Whether both ends are on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.peer.is_none()
    }

    /// Whether it has sent, and whether it has received, of late.
    pub(super) fn is_active(&self, now: Moment) -> [bool; 2] {
        let lately = |at: Moment| now <= at.plus(tuning::network::ACTIVE_FOR);
        self.moved_at.map(|at| at.is_some_and(lately))
    }

    /// Its descriptor, for a moment; `None` if that is another socket's by now.
    pub(super) fn borrow(&self, member: &Watched) -> Option<OwnedFd> {
        let Way::Descriptor(descriptor) = self.way else { return None };
        let borrowed = member.borrow(descriptor)?;
        (tcp::cookie(borrowed.as_raw_fd()) == Ok(self.cookie)).then_some(borrowed)
    }

    /// What it does, and its descriptor if it can be borrowed; `None` if it is not there any more.
    pub(super) fn see(
        &self,
        member: &Watched,
        diag: &mut Option<Diag>,
    ) -> Option<(Option<OwnedFd>, Info)> {
        if let Way::Name(name) = &self.way {
            return Some((None, diag.as_mut()?.ask(name)?));
        }
        let borrowed = self.borrow(member)?;
        let info = tcp::info(borrowed.as_raw_fd()).ok()?;
        Some((Some(borrowed), info))
    }

    /// Notes what it has moved; returns the bytes sent and received since the last look.
    pub(super) fn note(&mut self, now: Moment, info: &Info) -> [u64; 2] {
        let totals = [info.sent, info.received];
        let mut new = [0; 2];
        for (place, total) in totals.into_iter().enumerate() {
            new[place] = total.saturating_sub(self.moved[place]);
            if new[place] > 0 {
                self.moved_at[place] = Some(now);
            }
        }
        self.moved = totals;
        new
    }

    /// Adds what it has moved since the last look to its paths.
    pub(super) fn add_to(&self, paths: &mut Paths, now: Moment, new: [u64; 2], info: &Info) {
        let Some(peer) = self.peer else { return };
        for (place, flow) in [Flow::Up, Flow::Down].into_iter().enumerate() {
            if let Some(moved_at) = self.moved_at[place] {
                paths.note(paths::key(peer, flow), now, (new[place], moved_at), info);
            }
        }
    }

    /// Has the kernel hold it to its shares: of its path, and of the limits of its class.
    pub(super) fn tell(&mut self, borrowed: &OwnedFd, trip: Nanos, paths: &Paths, shares: &Shares) {
        let of = |flow| self.peer.and_then(|peer| paths.share(paths::key(peer, flow)));
        let limit = |share: Option<u64>| share.filter(|_| self.limited);
        let rates = [of(Flow::Up).map(|(_, rate)| rate), limit(shares.rate())];
        let windows = [of(Flow::Down).map(|(window, _)| window), limit(shares.window(trip))];
        self.pace(borrowed, rates.into_iter().flatten().min());
        self.open(borrowed, windows.into_iter().flatten().min());
        let [_, window] = windows;
        self.bound(borrowed, window);
    }

    /// Has it send at this rate at most, or at the program's own.
    fn pace(&mut self, borrowed: &OwnedFd, rate: Option<u64>) {
        let rate = rate.map_or(self.own, |rate| marked(rate.max(MODULUS * 100)).min(self.own));
        let before = if self.set.0 == 0 { self.own } else { self.set.0 };
        let is_due = rate != before && (rate == self.own || differs(before, rate));
        if is_due && socket::set_pacing(borrowed.as_raw_fd(), rate).is_ok() {
            self.set.0 = if rate == self.own { 0 } else { rate };
        }
    }

    /// Has so much be on its way to it at most, or as much as the kernel likes.
    fn open(&mut self, borrowed: &OwnedFd, window: Option<u64>) {
        let fd = borrowed.as_raw_fd();
        match window {
            // Each time, as the kernel raises it by itself.
            Some(window) => {
                let window = marked(window.clamp(WINDOW_MIN, WINDOW_MAX)) as u32;
                if tcp::set_window(fd, window).is_ok() {
                    self.set.1 = window;
                }
            }
            None if self.set.1 != 0 => {
                let _ = tcp::set_window(fd, WINDOW_MAX as u32);
                self.set.1 = 0;
            }
            None => {}
        }
    }

    /// Has so much wait in it at most while its process is held, or as much as the kernel likes.
    fn bound(&mut self, borrowed: &OwnedFd, bytes: Option<u64>) {
        let fd = borrowed.as_raw_fd();
        match bytes.map(|bytes| marked(bytes.clamp(WINDOW_MIN, WINDOW_MAX)) as u32) {
            Some(bytes) if !self.keeps_buffer => {
                if differs(u64::from(self.set.2), u64::from(bytes)) {
                    // A system that allows less than a long path needs must not slow it down.
                    self.keeps_buffer = socket::fix_buffer(fd, bytes) != Ok(true);
                    self.set.2 = if self.keeps_buffer { 0 } else { bytes };
                }
            }
            None if self.set.2 != 0 => {
                let _ = socket::free_buffer(fd);
                self.set.2 = 0;
            }
            Some(_) | None => {}
        }
    }

    /// Leaves it as it was. What is refused has ended.
    pub(super) fn release(&mut self, borrowed: &OwnedFd) {
        self.pace(borrowed, None);
        self.open(borrowed, None);
        self.bound(borrowed, None);
    }
}

/// Whether a rate is worth a change.
fn differs(before: u64, rate: u64) -> bool {
    before.abs_diff(rate) > before / 32
}

#[cfg(test)]
mod tests;
