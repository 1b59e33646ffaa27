//! What is told of a class that gives way on the network by the queue that its connections see.

use std::net::{IpAddr, Ipv6Addr};

use discnice_ledger::Class;
use discnice_ledger::uplink::Yielding;
use discnice_sys::time;
use discnice_units::Rate;
use serde::Serialize;

/// Giving way now, as machine-readable output has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Queue {
    /// Milliseconds for which a packet waits behind those of others.
    queue_ms: f64,
    /// The other end of the connections.
    peer: IpAddr,
    /// Bytes a second that are left to them.
    rate: u64,
}

impl Queue {
    /// That of a class, if it gives way.
    pub(crate) fn of(class: &Class) -> Option<Self> {
        class.uplink().yielding(time::now()).map(Self::from)
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        let Self { queue_ms, peer, rate } = self;
        let rate = Rate::per_second(*rate);
        format!("gives way on the network: queue of {queue_ms:.0} ms to {peer}, {rate} is left")
    }
}

impl From<Yielding> for Queue {
    fn from(told: Yielding) -> Self {
        let peer = Ipv6Addr::from(told.peer).to_canonical();
        Self { queue_ms: told.queue.0 as f64 / 1e6, peer, rate: told.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_units::Nanos;

    #[test]
    fn a_queue_is_told_with_its_other_end() {
        let peer = std::net::Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped().octets();
        let told = Queue::from(Yielding { queue: Nanos::from_millis(80), peer, rate: 72_000 });
        let words = told.words();
        assert!(words.contains("queue of 80 ms to 10.0.0.2"), "{words}");
    }
}
