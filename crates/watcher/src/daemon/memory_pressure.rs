//! Pauses classes so that their pages are reclaimed (Rate Windows, 2; ADR 15).
//!
//! Sampled: for how long tasks have waited for memory (PSI), whether memory is scarce at all, and
//! how much of it each class has. What follows is decided by [`discnice_ledger::policy::memory`].

use discnice_graybox::mac;
use discnice_ledger::Class;
use discnice_ledger::policy::memory::{Bounds, Regulation, Waited};
use discnice_sys::procfs;
use discnice_units::{Moment, Nanos};

use crate::Watch;
use crate::daemon::tuning;

//= rate-windows/2-resident
/// One class, as far as its memory goes.
pub(crate) struct Guest<'a> {
    pub(crate) class: &'static Class,
    pub(crate) watch: &'a mut Watch,
    pub(crate) regulation: &'a mut Regulation,
    /// When the class is to be looked at next.
    pub(crate) due: &'a mut Moment,
}

/// What the machine's memory is like.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Of the machine, in bytes.
    machine: u64,
    page: u64,
    /// How long tasks had waited for memory at the last look.
    stalled: Nanos,
    /// Page faults that had to read, of all processes and of the classes.
    faults: (u64, u64),
    looked: Option<Moment>,
    next: Moment,
}

impl Default for Pressure {
    fn default() -> Self {
        let page = rustix::param::page_size() as u64;
        let (machine, stalled) = (mac::machine(), mac::stalled().unwrap_or_default());
        Self { machine, page, stalled, faults: (0, 0), looked: None, next: Moment::FIRST }
    }
}

impl Pressure {
    /// Looks at once, as a class may have got thresholds.
    pub(crate) fn hurry(&mut self) {
        self.next = Moment::FIRST;
    }

    /// Whether it is time for that.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        now >= self.next
    }

    //= rate-windows/2-high
    //= gray-box/4.3.4-malloc
    /// Looks at all classes that have thresholds, if it is time; returns when to be called again.
    pub(crate) fn step<'a>(
        &mut self,
        now: Moment,
        guests: impl Iterator<Item = Guest<'a>>,
    ) -> Moment {
        if !self.is_due(now) {
            return self.next;
        }
        let mut bounded = Vec::new();
        for mut guest in guests {
            match guest.class.memory().bounds(guest.class.is_guest(), self.machine) {
                Some(bounds) => bounded.push((guest, bounds)),
                None => guest.let_go(),
            }
        }
        if bounded.is_empty() {
            self.next = now.plus(tuning::memory::NONE);
            return self.next;
        }
        let waited = self.waited(now);
        let mut close = waited || bounded.iter().any(|(guest, _)| guest.regulation.stands());
        if close {
            let others = self.others_fault(&bounded);
            for (guest, bounds) in &mut bounded {
                close |= self.look(now, guest, *bounds, waited, others);
            }
        }
        self.next = now.plus(if close { tuning::memory::CLOSE } else { tuning::memory::CALM });
        self.next
    }

    /// Returns true if tasks have waited for memory since the last look.
    fn waited(&mut self, now: Moment) -> bool {
        let before = self.looked.replace(now);
        // A kernel without PSI: that memory is scarce has to do.
        let Some(stalled) = mac::stalled() else { return true };
        let waited = stalled.minus(std::mem::replace(&mut self.stalled, stalled));
        let is_much = |time: Nanos| waited.0.saturating_mul(tuning::memory::PRESSED) > time.0;
        before.is_some_and(|before| is_much(now.since(before)))
    }

    /// Returns true if others had page faults since the last look that had to read: their pages had
    /// been reclaimed. Both counts are not of one moment, so it takes more than a part of the
    /// classes' own.
    fn others_fault(&mut self, bounded: &[(Guest<'_>, Bounds)]) -> bool {
        let everybody = mac::major_faults();
        let processes = bounded.iter().flat_map(|(guest, _)| guest.watch.processes());
        let own = processes.filter_map(procfs::stat).map(|stat| stat.major_faults).sum();
        let before = std::mem::replace(&mut self.faults, (everybody, own));
        let (all, own) = (everybody.saturating_sub(before.0), own.saturating_sub(before.1));
        before.0 > 0 && all.saturating_sub(own) > tuning::memory::FEW + own / tuning::memory::PART
    }

    /// Looks at one class; whether it stands.
    fn look(
        &self,
        now: Moment,
        guest: &mut Guest<'_>,
        bounds: Bounds,
        waited: bool,
        others: bool,
    ) -> bool {
        let stood = guest.regulation.stands();
        let scarce = || guest.watch.processes().next().is_some_and(mac::is_scarce);
        let waited = match (waited && scarce(), others) {
            (false, _) => Waited::None,
            (true, false) => Waited::Tasks,
            (true, true) => Waited::Others,
        };
        let resident = self.resident(guest.watch.processes());
        let stands = guest.regulation.decide(now, bounds, resident, waited);
        if stands {
            guest.watch.rest(now.plus(tuning::memory::HOLD));
        } else if stood {
            guest.watch.wake();
        }
        if stands || stood {
            *guest.due = Moment::FIRST;
        }
        stands
    }

    /// Resident memory of these processes in bytes. Files and shared memory that several have are the class's
    /// once: as much as the process has that has most of them.
    fn resident(&self, processes: impl Iterator<Item = u32>) -> u64 {
        let (mut own, mut shared) = (0, 0);
        for (all, common) in processes.filter_map(procfs::resident) {
            own += all.saturating_sub(common);
            shared = common.max(shared);
        }
        (own + shared) * self.page
    }
}

impl Guest<'_> {
    /// Its thresholds were lifted.
    fn let_go(&mut self) {
        if self.regulation.stands() {
            *self.regulation = Regulation::default();
            self.watch.wake();
            *self.due = Moment::FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rate-windows/2-resident
    #[test]
    fn files_of_many_processes_count_once() {
        let pressure = Pressure::default();
        let own = std::process::id();
        let once = pressure.resident([own].into_iter());
        let twice = pressure.resident([own, own].into_iter());
        assert!(once > 0 && twice > once && twice < 2 * once, "{once} {twice}");
    }
}
