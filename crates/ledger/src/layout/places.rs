//! The media that a class uses, forgotten once it uses others.
//!
//! A job reads its program on one disk, writes a log there, and works on another. If the first counted for good, the job
//! would be held for whatever uses that disk, and what it moves on the second would be taken for that of others. So the class
//! counts what it moves where, in epochs: a medium counts that got much of an epoch, or much of the one before.

use discnice_units::{Bytes, Moment, Nanos};

use crate::board::MEDIA;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// How long an epoch lasts, if the class uses any medium in it: one that is held on a busy disk moves a piece every four
/// seconds.
const EPOCH: Nanos = Nanos(10 * Nanos::SECOND.0);
/// How long an epoch lasts at least.
const SHORTEST: Nanos = Nanos(2 * Nanos::SECOND.0);
/// Bytes that a class moves in the shortest epoch: those of a program and its modules.
const MOVED: u64 = 32 << 20;
/// KiB in an epoch from which a medium counts: sixty-four reads of 4 KiB.
const LARGE: u32 = 256;
/// Part of all that was noted from which a medium counts, if that is less: one in so many.
const PART: u64 = 32;

/// What is moved where, each medium at its place of the board.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Places {
    /// When the epoch began; zero before the first.
    since: AtomicU64,
    /// Bytes that the class had moved in all by then.
    moved: AtomicU64,
    /// Bytes that were noted in the last epoch.
    last: AtomicU64,
    /// The file system, as stat(2) numbers it, of which the medium was found last in this epoch; zero for none.
    device: AtomicU64,
    /// The place of that medium.
    place: AtomicU32,
    epoch: AtomicU32,
    /// The media that counted in the last epoch, one bit for each.
    before: AtomicU32,
    /// KiB that were noted in this epoch.
    noted: [AtomicU32; MEDIA],
}

impl Places {
    /// The media that count, one bit for each.
    pub(super) fn all(&self) -> u32 {
        let least = least(self.last.load(Ordering::Relaxed).saturating_add(self.sum()));
        let noted = self.noted.iter().map(|kib| kib.load(Ordering::Relaxed));
        self.before.load(Ordering::Relaxed) | large(noted, least)
    }

    /// Notes that so much was moved on the medium at this place.
    pub(super) fn note(&self, place: usize, moved: Bytes) {
        let kib = u32::try_from(moved.get().div_ceil(1 << 10)).unwrap_or(u32::MAX).max(1);
        if let Some(noted) = self.noted.get(place) {
            let before = noted.load(Ordering::Relaxed);
            noted.store(before.saturating_add(kib), Ordering::Relaxed);
        }
    }

    /// Returns the place of the medium of a file system, if that was found in this epoch.
    pub(super) fn of_device(&self, device: u64) -> Option<usize> {
        let is_last = || self.device.load(Ordering::Acquire) == device;
        let place = is_last().then(|| self.place.load(Ordering::Acquire) as usize);
        place.filter(|_| is_last())
    }

    /// Notes where the medium of a file system is.
    pub(super) fn set_device(&self, device: u64, place: usize) {
        self.device.store(0, Ordering::Release);
        self.place.store(place as u32, Ordering::Release);
        self.device.store(device, Ordering::Release);
    }

    /// Returns the number of the epoch, from 1 to [`Self::EPOCHS`] in turn.
    pub(super) fn epoch(&self) -> u8 {
        (self.epoch.load(Ordering::Relaxed) % u32::from(Self::EPOCHS)) as u8 + 1
    }

    /// How many epochs have numbers of their own.
    pub(super) const EPOCHS: u8 = 15;

    /// What was moved in this epoch, if the class has moved `moved` in all, and was not noted anywhere: nothing if that is
    /// less than half, as the calls of a program do not tell all that it causes.
    pub(super) fn unplaced(&self, moved: u64) -> Bytes {
        let new = moved.saturating_sub(self.moved.load(Ordering::Relaxed));
        let rest = new.saturating_sub(self.sum());
        Bytes::new(if rest > new / 2 { rest } else { 0 })
    }

    /// Begins a new epoch if the last began long ago, or the class has moved enough since, `moved` in all, and any medium was
    /// noted in it: a class that does nothing stays where it is.
    pub(super) fn age(&self, now: Moment, moved: u64) {
        let since = self.since.load(Ordering::Relaxed);
        let new = moved.saturating_sub(self.moved.load(Ordering::Relaxed));
        let lasts = if new < MOVED { EPOCH } else { SHORTEST };
        if now.since(Moment(since)) < lasts {
            return;
        }
        let sum = self.sum();
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if since != 0 && sum == 0
            || self.since.compare_exchange(since, now.0, order.0, order.1).is_err()
        {
            return;
        }
        self.moved.store(moved, Ordering::Relaxed);
        if since != 0 {
            self.begin(sum);
        }
    }

    /// Begins a new epoch after one in which so many bytes were noted.
    fn begin(&self, sum: u64) {
        let noted = self.noted.iter().map(|kib| kib.swap(0, Ordering::Relaxed));
        self.before.store(large(noted, least(sum)), Ordering::Relaxed);
        self.last.store(sum, Ordering::Relaxed);
        self.device.store(0, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes that were noted in this epoch.
    fn sum(&self) -> u64 {
        self.noted.iter().map(|kib| u64::from(kib.load(Ordering::Relaxed)) << 10).sum()
    }
}

/// KiB from which a medium counts where `sum` bytes were noted in all.
const fn least(sum: u64) -> u32 {
    let part = (sum / PART) >> 10;
    let least = if part < LARGE as u64 { part as u32 } else { LARGE };
    if least == 0 { 1 } else { least }
}

/// The media with at least so many KiB, one bit for each.
fn large(noted: impl Iterator<Item = u32>, least: u32) -> u32 {
    noted.enumerate().fold(0, |all, (place, kib)| all | u32::from(kib >= least) << place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: usize = 3;
    const DATA: usize = 5;
    const KIB: u64 = 1 << 10;

    fn places() -> Places {
        Places {
            since: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            last: AtomicU64::new(0),
            device: AtomicU64::new(0),
            place: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            before: AtomicU32::new(0),
            noted: [(); MEDIA].map(|()| AtomicU32::new(0)),
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment((1000 + seconds) * Nanos::SECOND.0)
    }

    /// The seconds of forty in which the system's disk counts, of a job that moves `data` bytes a second on another and
    /// `system` on that one after it moved a MiB there at first.
    fn counts_on_system(data: u64, system: u64) -> Vec<u64> {
        let places = places();
        let counts = |second: &u64| {
            places.age(at(*second), second * (data + system));
            if *second == 0 {
                places.note(SYSTEM, Bytes::new(1 << 20));
            }
            if system > 0 {
                places.note(SYSTEM, Bytes::new(system));
            }
            places.note(DATA, Bytes::new(data));
            assert_ne!(places.all() & 1 << DATA, 0, "{second}");
            places.all() & 1 << SYSTEM != 0
        };
        (0..40).filter(counts).collect()
    }

    #[test]
    fn what_is_used_no_more_is_forgotten_after_two_epochs() {
        assert_eq!(counts_on_system(1 << 20, 0), (0..20).collect::<Vec<_>>());
        assert_eq!(counts_on_system(MOVED, 0), (0..4).collect::<Vec<_>>(), "it moves much");
    }

    #[test]
    fn a_log_does_not_count_and_small_work_does() {
        assert_eq!(counts_on_system(MOVED, KIB), (0..4).collect::<Vec<_>>());
        assert_eq!(counts_on_system(MOVED, 160 * KIB).len(), 40, "64 reads of 4 KiB in an epoch");
        assert_eq!(counts_on_system(40 * KIB, 4 * KIB).len(), 40, "a tenth of a held job");
    }

    #[test]
    fn what_rests_stays_where_it_is() {
        let places = places();
        places.note(SYSTEM, Bytes::new(1));
        for second in 0..1000 {
            places.age(at(second), 0);
            assert_eq!(places.all(), 1 << SYSTEM, "{second}");
        }
    }

    #[test]
    fn a_device_is_found_once_in_an_epoch() {
        let places = places();
        let mut asked = 0;
        for second in 0..30 {
            places.age(at(second), 0);
            if places.of_device(0x801).is_none() {
                places.set_device(0x801, DATA);
                asked += 1;
            }
            places.note(places.of_device(0x801).unwrap(), Bytes::new(KIB));
            assert_eq!(places.of_device(0x802), None);
        }
        assert_eq!(asked, 3);
    }

    #[test]
    fn what_calls_do_not_tell_is_unplaced() {
        let places = places();
        places.age(at(0), 1 << 20);
        assert_eq!(places.unplaced(1 << 20), Bytes::new(0));
        assert_eq!(places.unplaced(3 << 20), Bytes::new(2 << 20));
        places.note(DATA, Bytes::new(1 << 20));
        assert_eq!(places.unplaced(3 << 20), Bytes::new(0), "half of it is told");
    }
}
