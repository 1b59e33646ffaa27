//! The TCP connections that members of a class have with other machines.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use discnice_regulator::Flow;
use discnice_sys::socket::{self, Machine};
use discnice_sys::tcp::{self, Info};
use discnice_units::Nanos;

use super::paths::{self, Paths};
use crate::member::Watched;
use crate::process::descriptors;
use crate::tuning;

/// A rate that we set leaves this remainder, so that the next watcher knows it from a program's own.
const MARK: u64 = 77;
const MODULUS: u64 = 100;

/// A connection.
#[derive(Debug)]
struct Connection {
    process: u32,
    descriptor: i32,
    cookie: u64,
    peer: [u8; 16],
    /// Bytes sent and received at the last look, and when that had changed.
    moved: [u64; 2],
    moved_at: [Nanos; 2],
    /// The rate that the program itself set.
    own: u64,
    /// The rate and the window that were set last; zero for none.
    set: (u64, u32),
}

/// Those of a class, by the inode of the socket.
#[derive(Debug, Default)]
pub(super) struct Connections {
    known: HashMap<u64, Connection>,
    /// Sockets that are none.
    others: HashSet<u64>,
}

impl Connections {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Looks through the descriptors of the members; returns how many there were.
    pub(super) fn search(&mut self, members: &HashMap<u32, Watched>) -> u64 {
        let mut seen = HashSet::new();
        let mut links = 0;
        for member in members.values().take(tuning::uplink::PROCESSES) {
            for link in descriptors::of(member.id(), tuning::uplink::DESCRIPTORS) {
                links += 1;
                let Some(inode) = socket_of(&link) else { continue };
                if !seen.insert(inode)
                    || self.others.contains(&inode)
                    || self.known.contains_key(&inode)
                    || self.known.len() >= tuning::uplink::CONNECTIONS
                {
                    continue;
                }
                let borrowed = descriptors::number(&link)
                    .and_then(|number| Some((number, member.borrow(number)?)));
                let Some((descriptor, borrowed)) = borrowed else { continue };
                match Connection::of((member.id(), descriptor), &borrowed) {
                    Kind::Connected(found) => {
                        self.known.insert(inode, found);
                    }
                    Kind::Other => {
                        self.others.insert(inode);
                    }
                    Kind::Unconnected => {}
                }
            }
        }
        self.others.retain(|inode| seen.contains(inode));
        links
    }

    /// Looks at all, has the paths decide, and tells each connection its share. Returns true if any moved bytes of late.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        members: &HashMap<u32, Watched>,
        paths: &mut Paths,
    ) -> bool {
        paths.begin(now);
        let mut borrowed: HashMap<u64, OwnedFd> = HashMap::new();
        self.known.retain(|inode, one| {
            let Some((descriptor, info)) = one.borrow(members) else { return false };
            one.note(now, &info, paths);
            borrowed.insert(*inode, descriptor);
            info.is_established
        });
        let lively = paths.decide(now);
        for (inode, one) in &mut self.known {
            if let Some(descriptor) = borrowed.get(inode) {
                one.tell(descriptor, paths);
            }
        }
        lively
    }

    /// Leaves all as they were.
    pub(super) fn release(&mut self, members: &HashMap<u32, Watched>) {
        for one in self.known.values() {
            if let Some((descriptor, _)) = one.borrow(members) {
                one.release(&descriptor);
            }
        }
        self.known.clear();
    }
}

/// What a socket is.
enum Kind {
    /// A connection with another machine.
    Connected(Connection),
    /// One that may become such a connection.
    Unconnected,
    /// Anything else.
    Other,
}

impl Connection {
    fn of((process, descriptor): (u32, i32), borrowed: &OwnedFd) -> Kind {
        let fd = borrowed.as_raw_fd();
        let Ok(info) = tcp::info(fd) else { return Kind::Other };
        if !info.is_established {
            return Kind::Unconnected;
        }
        let (Ok(false), Ok(Machine::Host(peer))) = (socket::is_local(fd), socket::peer(fd)) else {
            return Kind::Other;
        };
        let (Ok(cookie), Ok(pace)) = (tcp::cookie(fd), tcp::pace(fd)) else { return Kind::Other };
        let own = if pace % MODULUS == MARK { tcp::UNPACED } else { pace };
        let (moved, moved_at) = ([info.sent, info.received], [Nanos(0); 2]);
        Kind::Connected(Self {
            process,
            descriptor,
            cookie,
            peer,
            moved,
            moved_at,
            own,
            set: (0, 0),
        })
    }

    /// Its descriptor, for a moment, and what it does; `None` if it is another socket's by now.
    fn borrow(&self, members: &HashMap<u32, Watched>) -> Option<(OwnedFd, Info)> {
        let borrowed = members.get(&self.process)?.borrow(self.descriptor)?;
        if tcp::cookie(borrowed.as_raw_fd()) != Ok(self.cookie) {
            return None;
        }
        let info = tcp::info(borrowed.as_raw_fd()).ok()?;
        Some((borrowed, info))
    }

    /// Adds what it has moved since the last look to its paths.
    fn note(&mut self, now: Nanos, info: &Info, paths: &mut Paths) {
        let totals = [info.sent, info.received];
        for (place, flow) in [Flow::Up, Flow::Down].into_iter().enumerate() {
            let new = totals[place].saturating_sub(self.moved[place]);
            self.moved[place] = totals[place];
            if new > 0 {
                self.moved_at[place] = now;
            }
            paths.note(paths::key(self.peer, flow), now, (new, self.moved_at[place]), info);
        }
    }

    /// Has the kernel hold it to its share.
    fn tell(&mut self, borrowed: &OwnedFd, paths: &Paths) {
        let fd = borrowed.as_raw_fd();
        if let Some((_, rate)) = paths.share(paths::key(self.peer, Flow::Up)) {
            let rate = (rate / MODULUS * MODULUS).max(MODULUS * 100) + MARK;
            let rate = rate.min(self.own);
            if differs(self.set.0, rate) && tcp::set_pace(fd, rate).is_ok() {
                self.set.0 = rate;
            }
        }
        if let Some((window, _)) = paths.share(paths::key(self.peer, Flow::Down)) {
            // Each time, as the kernel raises it by itself.
            let window = window.clamp(WINDOW_MIN, WINDOW_MAX) as u32;
            if tcp::set_window(fd, window).is_ok() {
                self.set.1 = window;
            }
        }
    }

    fn release(&self, borrowed: &OwnedFd) {
        let fd = borrowed.as_raw_fd();
        // Refused: the connection has ended.
        if self.set.0 != 0 {
            let _ = tcp::set_pace(fd, self.own);
        }
        if self.set.1 != 0 {
            let _ = tcp::set_window(fd, WINDOW_MAX as u32);
        }
    }
}

/// Least and greatest window of a connection: a segment, and more than the kernel ever gives.
const WINDOW_MIN: u64 = 1460;
const WINDOW_MAX: u64 = 1 << 30;

/// Whether a rate is worth a change.
fn differs(before: u64, rate: u64) -> bool {
    before.abs_diff(rate) > before / 32
}

/// The inode of the socket that a link means.
fn socket_of(link: &Path) -> Option<u64> {
    let target = fs::read_link(link).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
