//! What is seen of a path, and the shortest round trip of late.

use discnice_units::{Moment, Nanos};

/// The base is the least of so many spans of time.
const SPANS: usize = 5;
pub(super) const SPAN: Nanos = Nanos(60 * Nanos::SECOND.0);

/// What is seen of the connections of a path, in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When.
    pub now: Moment,
    /// The round trip now.
    pub trip: Nanos,
    /// The least round trip that the kernel knows of; that of the connection's beginning is among them.
    pub least: Nanos,
    /// Bytes moved since the first look.
    pub moved: u64,
    /// Set if it sends: then the round trip includes the wait of an acknowledgement for a second segment.
    pub sends: bool,
}

/// The least round trips of the last five minutes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    spans: [Nanos; SPANS],
    /// When the first of them began.
    from: Moment,
}

impl Base {
    pub(super) const UNKNOWN: Self = Self { spans: [Nanos(u64::MAX); SPANS], from: Moment::FIRST };

    pub(super) fn note(&mut self, now: Moment, trip: Nanos) {
        let over = (now.since(self.from).0 / SPAN.0).min(SPANS as u64) as usize;
        if over > 0 {
            self.spans.rotate_right(over);
            self.from = now;
            self.spans.iter_mut().take(over).for_each(|span| *span = Nanos(u64::MAX));
        }
        self.spans[0] = self.spans[0].min(trip);
    }

    pub(super) fn get(&self) -> Nanos {
        self.spans.into_iter().min().unwrap_or(Nanos(u64::MAX))
    }
}
