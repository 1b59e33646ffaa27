//! Sockets that wait for their turn.

use core::sync::atomic::{AtomicU64, Ordering};

use discnice_interpose::set::Set;
use discnice_regulator::{Flow, LimitsVersion};
use discnice_sys::{epoll, time};
use discnice_units::{Moment, Nanos};

use crate::engine;
use crate::net::socket;
use crate::net::socket::{Changing, Flows, Socket};

/// The descriptors that are parked.
static PARKED: Set = Set::new();
/// When a socket was parked last.
static LAST: AtomicU64 = AtomicU64::new(0);
/// When sockets were last released because their turns had come.
static ROUND: AtomicU64 = AtomicU64::new(0);

/// When a release could not be done, because another thread was at that socket.
const AGAIN: Nanos = Nanos::from_millis(1);

/// What a flow's readiness is called by epoll and, in its lower half, by poll. Not only that a socket
/// can be read is withheld but also that its peer has finished: to learn that, a program must read.
pub const fn events(flows: Flows) -> u32 {
    let mut events = 0;
    if flows.contains(Flow::Down) {
        events |= libc::EPOLLIN | libc::EPOLLRDNORM | libc::EPOLLRDHUP;
    }
    if flows.contains(Flow::Up) {
        events |= libc::EPOLLOUT | libc::EPOLLWRNORM;
    }
    events as u32
}

/// Returns true if any socket is parked.
#[inline]
pub fn any() -> bool {
    !PARKED.is_empty()
}

/// Returns true if a socket has been parked in the last second.
pub fn recently(now: Moment) -> bool {
    LAST.load(Ordering::Relaxed).saturating_add(Nanos::SECOND.0) > now.0
}

/// Parks a flow until `due`, with so many bytes reserved for then.
pub fn park(
    fd: i32,
    socket: &Socket,
    flow: Flow,
    due: Moment,
    granted: u64,
    limits: LimitsVersion,
) {
    socket.park(flow, due, granted, limits.0);
    LAST.store(time::now().0, Ordering::Relaxed);
    PARKED.insert(fd);
    if let Some(changing) = socket.change() {
        mask(fd, socket, &changing);
    }
}

/// Lets the kernel's registration withhold what is parked. A registration for one event is left
/// alone: the program has had its event or will ask for the next one, and then it is masked.
pub fn mask(fd: i32, socket: &Socket, changing: &Changing<'_>) {
    let Some(registered) = changing.registration() else { return };
    if registered.event.events & libc::EPOLLONESHOT as u32 == 0 {
        withhold(fd, socket, changing);
    }
}

/// Lets the kernel's registration withhold what is parked, even if it is for one event.
pub fn withhold(fd: i32, socket: &Socket, changing: &Changing<'_>) {
    let Some(mut registered) = changing.registration() else { return };
    let parked = events(socket.parked());
    if registered.event.events & parked == 0 {
        return;
    }
    registered.event.events &= !parked;
    match epoll::modify(registered.epoll, fd, registered.event) {
        Ok(()) => changing.set_masked(true),
        // Exclusive, or not what we think it is: we know nothing about it.
        Err(_) => changing.register(None),
    }
}

/// Gives the readiness of flows back; whether that could be done.
fn restore(fd: i32, socket: &Socket, flows: Flows) -> bool {
    let changing = socket.change();
    changing.map(|changing| restore_changing(fd, socket, flows, &changing)).is_some()
}

fn restore_changing(fd: i32, socket: &Socket, flows: Flows, changing: &Changing<'_>) {
    let rest = socket.unpark(flows);
    if changing.is_masked() {
        changing.set_masked(false);
        if let Some(mut registered) = changing.registration() {
            registered.event.events &= !events(rest);
            match epoll::modify(registered.epoll, fd, registered.event) {
                Ok(()) => changing.set_masked(rest.0 != 0),
                Err(_) => changing.register(None),
            }
        }
    }
    if rest.0 == 0 {
        // Another thread may be parking the other flow.
        PARKED.remove(fd, || socket.parked().0 != 0);
    }
}

/// Gives all of a socket's readiness back, and what was reserved for it.
pub fn release(fd: i32, socket: &Socket) {
    if socket.parked().0 != 0 {
        restore(fd, socket, socket.parked());
        PARKED.remove(fd, || false);
    }
    give_grants_back(socket);
}

/// Gives all of a socket's readiness back, and what was reserved for it, while its registration is being changed.
pub fn release_changing(fd: i32, socket: &Socket, changing: &Changing<'_>) {
    if socket.parked().0 != 0 {
        restore_changing(fd, socket, socket.parked(), changing);
        give_grants_back(socket);
    }
}

fn give_grants_back(socket: &Socket) {
    for flow in [Flow::Up, Flow::Down] {
        let (granted, void) = socket.take_grant(flow, Moment::FIRST);
        if granted + void > 0
            && let Some(regulator) = engine::regulator()
        {
            regulator.settle_traffic(flow, granted + void, 0);
        }
    }
}

/// Gives a flow's readiness back because its turn has come.
pub fn release_flow(fd: i32, socket: &Socket, flow: Flow) {
    restore(fd, socket, Flows::only(flow));
}

/// Returns true if a parked flow's turn has come: its time has, or the limits have changed.
pub fn is_due(socket: &Socket, flow: Flow, now: Moment, limits: LimitsVersion) -> bool {
    socket.due(flow) <= now || socket.limits() != limits.0
}

/// Releases every socket that is due; returns when it is to be called again. Turns that come
/// shortly after each other share a round, so that the program wakes up once for all of them.
pub fn release_due(now: Moment, limits: LimitsVersion) -> Option<Moment> {
    if !any() {
        return None;
    }
    let beat = engine::regulator().map_or(Nanos(0), |regulator| regulator.traffic_beat());
    let round = Moment(ROUND.load(Ordering::Relaxed)).plus(beat);
    if now < round {
        return Some(round);
    }
    let (next, released) = release_all_due(now, limits);
    if released {
        ROUND.store(now.0, Ordering::Relaxed);
    }
    next.map(|next| if released { next.max(now.plus(beat)) } else { next })
}

/// Releases every socket that is due now, without sharing rounds; the second value is true if there
/// was any.
fn release_all_due(now: Moment, limits: LimitsVersion) -> (Option<Moment>, bool) {
    let (mut next, mut released) = (None, false);
    let mut wait_for = |due: Moment| next = Some(next.map_or(due, |next: Moment| next.min(due)));
    PARKED.for_each(|fd| {
        if let Some(socket) = socket(fd) {
            let later = release_one(fd, socket, now, limits);
            released |= later.is_none();
            later.map(&mut wait_for);
        }
    });
    (next, released)
}

fn release_one(fd: i32, socket: &Socket, now: Moment, limits: LimitsVersion) -> Option<Moment> {
    let parked = socket.parked();
    let (mut due, mut next) = (Flows(0), None);
    for flow in [Flow::Up, Flow::Down].into_iter().filter(|flow| parked.contains(*flow)) {
        if is_due(socket, flow, now, limits) {
            due.0 |= Flows::only(flow).0;
        } else {
            let at = socket.due(flow);
            next = Some(next.map_or(at, |next: Moment| next.min(at)));
        }
    }
    if (due.0 != 0 || parked.0 == 0) && !restore(fd, socket, due) {
        return Some(now.plus(AGAIN));
    }
    next
}

/// Releases every socket: another program takes this one's place.
pub fn release_all() {
    if any() {
        let _ = release_all_due(Moment::NEVER, LimitsVersion(0));
    }
}

/// Forgets what is parked: this is a forked child, and the parent's sockets are its parent's.
pub fn forget_all() {
    PARKED.clear(|fd| {
        if let Some(socket) = socket(fd) {
            socket.forget_turns();
        }
    });
}
