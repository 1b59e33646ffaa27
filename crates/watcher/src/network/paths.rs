//! The connections of a class with one machine, in one direction: they share a window.

use std::collections::HashMap;

use discnice_ledger::path_shares::{PATHS, PathShare};
use discnice_ledger::policy::Delay;
use discnice_ledger::policy::delay::Seen;
use discnice_ledger::uplink::Yielding;
use discnice_regulator::Flow;
use discnice_sys::tcp::Info;
use discnice_units::{Moment, Nanos};

use crate::tuning;

/// Which path: the machine at the other end, and the direction.
pub(super) type Key = ([u8; 16], bool);

/// The path of a connection in a direction.
pub(super) fn key(peer: [u8; 16], flow: Flow) -> Key {
    (peer, flow == Flow::Up)
}

/// One path.
#[derive(Debug, Default)]
struct Path {
    delay: Delay,
    /// Bytes moved since it is known.
    moved: u64,
    moved_at: Moment,
    /// Connections that move bytes, now and at the last look.
    active: u64,
    counted: u64,
    /// The shortest round trips that connections told of at this look: now, and ever.
    trip: Nanos,
    least: Nanos,
}

/// All of a class.
#[derive(Debug, Default)]
pub(super) struct Paths(HashMap<Key, Path>);

impl Paths {
    /// Begins a look.
    pub(super) fn begin(&mut self, now: Moment) {
        self.0.retain(|_, path| now < path.moved_at.plus(tuning::network::FORGOTTEN));
        for path in self.0.values_mut() {
            (path.counted, path.trip) = (0, Nanos(0));
        }
    }

    /// A connection has moved so many bytes since the last look, and was last seen to move any then.
    pub(super) fn note(
        &mut self,
        key: Key,
        now: Moment,
        (moved, moved_at): (u64, Moment),
        info: &Info,
    ) {
        if now > moved_at.plus(tuning::network::ACTIVE_FOR) {
            return;
        }
        let path = self.0.entry(key).or_default();
        path.counted += 1;
        if moved == 0 {
            return;
        }
        path.moved += moved;
        path.moved_at = now;
        let trip = match key.1 {
            true => info.trip,
            false if info.has_times => info.trip_received,
            false => Nanos(0),
        };
        let shorter = |one: Nanos, other: Nanos| match (one.0, other.0) {
            (0, _) => other,
            (_, 0) => one,
            _ => one.min(other),
        };
        path.trip = shorter(path.trip, trip);
        path.least = shorter(path.least, info.least);
    }

    /// Ends a look: all paths decide. Returns true if any moved bytes.
    pub(super) fn decide(&mut self, now: Moment) -> bool {
        let mut moves = false;
        for (key, path) in &mut self.0 {
            path.active = path.counted.max(1);
            moves |= path.counted > 0;
            let (trip, least) = (path.trip, std::mem::take(&mut path.least));
            path.delay.look(Seen { now, trip, least, moved: path.moved, sends: key.1 });
        }
        moves
    }

    /// What one connection of a path may do: its share of the window in bytes, and of the rate in bytes a second. `None` for a path on which
    /// nothing has moved.
    pub(super) fn share(&self, key: Key) -> Option<(u64, u64)> {
        let path = self.0.get(&key)?;
        Some((path.delay.window() / path.active, path.delay.rate() / path.active))
    }

    /// What one connection may do of each machine with which bytes are moved, the latest first.
    pub(super) fn shares(&self) -> Vec<PathShare> {
        let mut latest: Vec<(Moment, [u8; 16])> =
            self.0.iter().map(|((peer, _), path)| (path.moved_at, *peer)).collect();
        latest.sort_unstable_by(|one, other| other.cmp(one));
        let mut peers: Vec<[u8; 16]> = Vec::new();
        for (_, peer) in latest {
            if peers.len() < PATHS && !peers.contains(&peer) {
                peers.push(peer);
            }
        }
        let share = |peer| PathShare {
            peer,
            rate: self.share(key(peer, Flow::Up)).map(|(_, rate)| rate),
            window: self.share(key(peer, Flow::Down)).map(|(window, _)| window),
        };
        peers.into_iter().map(share).collect()
    }

    /// The path that gives way to the longest queue.
    pub(super) fn worst(&self) -> Option<Yielding> {
        let yielding = self.0.iter().filter(|(_, path)| path.delay.yields());
        let (key, path) = yielding.max_by_key(|(_, path)| path.delay.queue())?;
        Some(said(key.0, path.delay.queue(), path.delay.rate()))
    }
}

/// What is said of a path that gives way.
fn said(peer: [u8; 16], queue: Nanos, rate: u64) -> Yielding {
    Yielding { queue, peer, rate }
}
