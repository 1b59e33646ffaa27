//! How a class gives way on the network to what no counter of this machine shows, as its watcher says.

use discnice_units::{Moment, Nanos};

use crate::primitive::{AtomicU64, Ordering};

/// Said so long ago, it is over: the watcher says it anew several times a second.
pub(crate) const FRESH: Nanos = Nanos(Nanos::SECOND.0);

/// The address of a machine, as it is kept: IPv6, or IPv4 as IPv6 writes it.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Address([AtomicU64; 2]);

impl Address {
    pub(crate) fn get(&self) -> [u8; 16] {
        let [high, low] = self.0.each_ref().map(|word| word.load(Ordering::Relaxed));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    pub(crate) fn set(&self, address: [u8; 16]) {
        let address = u128::from_be_bytes(address);
        let [high, low] = &self.0;
        high.store((address >> 64) as u64, Ordering::Relaxed);
        low.store(address as u64, Ordering::Relaxed);
    }
}

/// The words of a watcher.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Uplink {
    /// When it was said last that the class gives way.
    said_at: AtomicU64,
    /// The queue, in nanoseconds.
    queue: AtomicU64,
    peer: Address,
    /// Bytes a second that the class has left on that path.
    rate: AtomicU64,
    /// For how long it has given way in all, in nanoseconds.
    yielded: AtomicU64,
}

/// How a class gives way on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yielding {
    /// How long a packet waits behind those of others.
    pub queue: Nanos,
    /// The address of the other end: IPv6, or IPv4 as IPv6 writes it.
    pub peer: [u8; 16],
    /// Bytes a second that the class has left there.
    pub rate: u64,
}

impl Uplink {
    /// Where the class gives way now; of several paths that with the longest queue.
    #[must_use]
    pub fn yielding(&self, now: Moment) -> Option<Yielding> {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let said_at = Moment(self.said_at.load(Ordering::Acquire));
        if said_at.0 == 0 || now >= said_at.plus(FRESH) {
            return None;
        }
        let (queue, rate) = (Nanos(load(&self.queue)), load(&self.rate));
        Some(Yielding { queue, peer: self.peer.get(), rate })
    }

    /// For how long it has given way in all.
    #[must_use]
    pub fn yielded(&self) -> Nanos {
        Nanos(self.yielded.load(Ordering::Relaxed))
    }

    /// Says where the class gives way, and for how long it has since that was said last.
    pub fn say(&self, now: Moment, yielding: Option<Yielding>, lasted: Nanos) {
        self.yielded.fetch_add(lasted.0, Ordering::Relaxed);
        let Some(Yielding { queue, peer, rate }) = yielding else {
            return self.said_at.store(0, Ordering::Release);
        };
        self.peer.set(peer);
        self.queue.store(queue.0, Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
        self.said_at.store(now.0.max(1), Ordering::Release);
    }
}
