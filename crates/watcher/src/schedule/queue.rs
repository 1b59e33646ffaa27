//! What is due next: processes in the order in which they are to be looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use discnice_units::Moment;

/// Processes, each perhaps several times: an entry holds only if it is the time that the process itself is due.
#[derive(Debug, Default)]
pub(crate) struct Queue(BinaryHeap<Reverse<(Moment, u32)>>);

impl Queue {
    /// Adds a process that is due then.
    pub(crate) fn add(&mut self, due: Moment, id: u32) {
        self.0.push(Reverse((due, id)));
    }

    /// When the first entry is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the first entry if it is due by now.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(Moment, u32)> {
        self.next().filter(|due| *due <= now)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_is_taken_first_and_nothing_too_early() {
        let mut queue = Queue::default();
        for (due, id) in [(30, 3), (10, 1), (20, 2), (10, 4)] {
            queue.add(Moment(due), id);
        }
        assert_eq!(queue.next(), Some(Moment(10)));
        let taken: Vec<u32> =
            std::iter::from_fn(|| queue.take_due(Moment(20))).map(|(_, id)| id).collect();
        assert_eq!((taken, queue.next()), (vec![1, 4, 2], Some(Moment(30))));
    }
}
