//! Tells that a process reads on other disks than those that its files are known to lie on. Exists for the row `io_uring` of politeness-hdd,
//! foreground `program start`, which took up to 3.1 s without it.
//!
//! A program that starts opens each of its modules for a moment, whereas what it prints to stays open. Only the latter shows in `/proc/PID/fd`
//! when it is looked at.

use discnice_sys::traffic;

/// What a process has read, and what the known disks have read since then.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// Bytes that it has read by now; `None` for a process of another user.
    read: Option<u64>,
    /// What it and the disks had read when these were looked up.
    begun: Option<(u64, u64)>,
    found: bool,
}

/// What a disk has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    disk: u64,
    /// Bytes that it has read.
    read: u64,
    in_flight: u64,
}

impl Elsewhere {
    /// Starts anew, as other disks are known from now on.
    pub(super) fn begin(&mut self) {
        self.begun = None;
    }

    /// Takes down what the process has read. That is in its account when it is submitted, and in the disk's when it is done, so
    /// that the disks must be looked at afterwards.
    pub(super) fn note(&mut self, read: Option<u64>) {
        self.read = read;
    }

    /// Returns true once the process has read more than these of the disks, all of them, have read meanwhile.
    pub(super) fn is_shown(&mut self, known: &[u64], all: &[Done]) -> bool {
        let done = all.iter().filter(|one| known.contains(&one.disk));
        let (count, read, in_flight) = done.fold((0, 0u64, 0u64), |(count, read, flight), one| {
            (count + 1, read.saturating_add(one.read), flight.saturating_add(one.in_flight))
        });
        // For some devices, the kernel does not count.
        if !self.found
            && count == known.len()
            && let Some(own) = self.read
        {
            let (own_before, read_before) = *self.begun.get_or_insert((own, read));
            let theirs = read.saturating_sub(read_before);
            self.found = in_flight == 0 && own.saturating_sub(own_before) > theirs;
        }
        self.found
    }
}

/// Looks at all disks.
pub(super) fn look_at_disks() -> Vec<Done> {
    let mut all = Vec::new();
    // If they cannot be read, nothing is known.
    let _ = traffic::disks(|disk| {
        all.push(Done { disk: disk.id, read: disk.moved.inward, in_flight: disk.in_flight });
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_known_disks_have_not_read_was_read_elsewhere() {
        let mut elsewhere = Elsewhere::default();
        let mut found = |own, read, in_flight| {
            elsewhere.read = Some(own);
            let known = Done { disk: 1, read, in_flight };
            elsewhere.is_shown(&[1], &[Done { disk: 2, read: own, in_flight: 8 }, known])
        };
        assert!(!found(1000, 50_000, 0), "the beginning");
        assert!(!found(5000, 54_000, 0), "all of it was read there");
        assert!(!found(9000, 54_000, 1), "it is on its way");
        assert!(!found(9000, 90_000, 0), "others read there, too");
        assert!(found(50_000, 90_000, 0));
    }

    #[test]
    fn what_the_kernel_does_not_count_shows_nothing() {
        let known = [Done { disk: 1, read: 0, in_flight: 0 }];
        let shown = |own: Option<u64>, disks: &[u64]| {
            let mut elsewhere = Elsewhere { read: own.map(|_| 0), ..Elsewhere::default() };
            elsewhere.is_shown(disks, &known);
            elsewhere.read = own;
            elsewhere.is_shown(disks, &known)
        };
        assert!(shown(Some(1), &[1]));
        assert!(!shown(None, &[1]), "another user's process");
        assert!(!shown(Some(1), &[1, 2]), "a device without counters");
    }
}
