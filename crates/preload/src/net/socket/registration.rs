//! A socket's registration with epoll, which the program made and we may change for a while.

use core::sync::atomic::Ordering;

use discnice_sys::epoll::Event;

use super::{MANY, MASKED, R, Socket};

/// A program's registration with an epoll instance.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// The instance.
    pub epoll: i32,
    /// What the program asked for.
    pub event: Event,
}

/// The right to change a socket's registration; given back when dropped.
#[derive(Debug)]
pub struct Changing<'a>(&'a Socket);

impl Socket {
    /// Tries for a moment to get the right to change the registration. A thread that has it is in
    /// one system call, unless it is the program's own thread, interrupted by a signal handler.
    pub fn change(&self) -> Option<Changing<'_>> {
        for _ in 0..1000 {
            let free = self.changing.compare_exchange(0, 1, Ordering::Acquire, R);
            if free.is_ok() {
                return Some(Changing(self));
            }
            core::hint::spin_loop();
        }
        None
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changing.store(0, Ordering::Release);
    }
}

impl Changing<'_> {
    /// The program's registration, if there is just one.
    pub fn registration(&self) -> Option<Registration> {
        let socket = self.0;
        let epoll = socket.epoll.load(R).checked_sub(1).filter(|epoll| *epoll >= 0)?;
        let event = Event { events: socket.events.load(R), data: socket.data.load(R) };
        (!socket.has(MANY)).then_some(Registration { epoll, event })
    }

    /// The program registered the socket, or changed or removed its registration.
    pub fn register(&self, registration: Option<Registration>) {
        let socket = self.0;
        let before = socket.epoll.load(R);
        match registration {
            Some(Registration { epoll, event }) => {
                socket.set(MANY, socket.has(MANY) || before != 0 && before != epoll + 1);
                socket.epoll.store(epoll + 1, R);
                socket.events.store(event.events, R);
                socket.data.store(event.data, R);
            }
            None => socket.epoll.store(0, R),
        }
        socket.set(MASKED, false);
    }

    /// The kernel's registration withholds readiness.
    pub fn set_masked(&self, on: bool) {
        self.0.set(MASKED, on);
    }

    /// Returns true if the kernel's registration withholds readiness.
    pub fn is_masked(&self) -> bool {
        self.0.has(MASKED)
    }
}
