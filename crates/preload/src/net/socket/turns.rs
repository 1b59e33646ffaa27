//! When a socket that is withheld from the program has its turn, and what it may move then.

use core::sync::atomic::{AtomicU64, Ordering};

use discnice_regulator::Flow;
use discnice_units::{Moment, Nanos};

use super::{Flows, R, Socket};

/// A grant not used for so long is void: its place in the queue has passed.
const GRANT_LIFE: Nanos = Nanos::from_millis(200);

impl Socket {
    /// The flows that are parked.
    #[inline]
    pub fn parked(&self) -> Flows {
        Flows(self.parked.load(Ordering::Acquire))
    }

    /// When a parked flow has its turn.
    pub fn due(&self, flow: Flow) -> Moment {
        Moment(self.due_of(flow).load(R))
    }

    fn due_of(&self, flow: Flow) -> &AtomicU64 {
        let [up, down] = &self.due;
        if flow == Flow::Up { up } else { down }
    }

    fn granted_of(&self, flow: Flow) -> &AtomicU64 {
        let [up, down] = &self.granted;
        if flow == Flow::Up { up } else { down }
    }

    /// The limits by which it was parked.
    pub fn limits(&self) -> u32 {
        self.limits.load(R)
    }

    /// Marks a flow as parked until `due`, with so many bytes reserved for then.
    pub fn park(&self, flow: Flow, due: Moment, granted: u64, limits: u32) {
        self.due_of(flow).store(due.0, R);
        self.granted_of(flow).store(granted, R);
        self.limits.store(limits, R);
        self.early.store(0, R);
        self.parked.fetch_or(Flows::only(flow).0, Ordering::Release);
    }

    /// Marks flows as no longer parked; returns those that remain.
    pub fn unpark(&self, flows: Flows) -> Flows {
        Flows(self.parked.fetch_and(!flows.0, Ordering::AcqRel) & !flows.0)
    }

    /// Keeps what is left of a turn for the next calls.
    pub fn keep_grant(&self, flow: Flow, bytes: u64, now: Moment) {
        self.due_of(flow).store(now.0, R);
        self.granted_of(flow).fetch_add(bytes, R);
    }

    /// Takes what was reserved for the flow's turn; the second value is what of it is void.
    pub fn take_grant(&self, flow: Flow, now: Moment) -> (u64, u64) {
        let granted = self.granted_of(flow);
        if granted.load(R) == 0 {
            return (0, 0);
        }
        let bytes = granted.swap(0, R);
        if now > self.due(flow).plus(GRANT_LIFE) { (0, bytes) } else { (bytes, 0) }
    }

    /// Counts a call that came before its turn.
    pub fn note_early(&self) -> u32 {
        self.early.fetch_add(1, R)
    }
}
