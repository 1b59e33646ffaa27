//! The daemons of the user that serve files (FUSE): they write for members, see [`crate::writeback::fuse_writes`].

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_units::Moment;

use crate::process::descriptors;
use crate::tuning;
use crate::writeback::portions::Pace;

/// What a daemon and the kernel talk through. fuse(4)
const DEVICE: &str = "/dev/fuse";

/// The user's daemons.
#[derive(Debug, Default)]
pub(crate) struct FuseDaemons {
    ids: Vec<u32>,
    again: Moment,
    /// Pace of the member they write for, until when, and when to look at what they have open.
    looks: Option<(Pace, Moment, Moment)>,
}

impl FuseDaemons {
    /// Returns the daemons that serve files now, or did so a moment ago: they have written for a
    /// member.
    pub(crate) fn ids(&mut self, now: Moment, pace: Pace) -> &[u32] {
        if now >= self.again {
            self.ids = find();
            self.again = now.plus(tuning::writeback::FUSE_SEARCH);
        }
        self.looks = Some((
            pace,
            now.plus(tuning::writeback::FUSE_WRITING_FOR),
            now.plus(tuning::writeback::FUSE_LOOK),
        ));
        &self.ids
    }

    /// When to look again at what they have open.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.looks.map(|(.., due)| due)
    }

    /// Calls `look` with each daemon, and the pace of the member it writes for, if it is time.
    pub(crate) fn go_on(&mut self, now: Moment, mut look: impl FnMut(u32, Pace)) {
        let Some((pace, until, _)) = self.looks.filter(|(.., due)| now >= *due) else { return };
        self.ids.iter().for_each(|id| look(*id, pace));
        let due = now.plus(tuning::writeback::FUSE_LOOK);
        self.looks = (due <= until).then_some((pace, until, due));
    }
}

fn find() -> Vec<u32> {
    let user = rustix::process::geteuid().as_raw();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == user).then_some(id)
    });
    ids.filter(|id| serves(*id)).collect()
}

fn serves(id: u32) -> bool {
    let leads_there = |link| fs::read_link(link).is_ok_and(|file| file == Path::new(DEVICE));
    descriptors::of(id, tuning::writeback::FUSE_DESCRIPTORS).any(leads_there)
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use super::*;

    #[test]
    fn a_process_without_an_open_device_serves_nothing() {
        assert!(!serves(std::process::id()));
        assert!(!find().contains(&std::process::id()));
    }

    #[test]
    fn daemons_are_looked_at_closely_as_long_as_they_write() {
        let mut daemons = FuseDaemons { ids: vec![7], again: Moment::NEVER, looks: None };
        let told = Moment::FIRST.plus(Nanos::SECOND);
        let pace = Pace { class: 1, portion: 4096, period: Nanos::SECOND };
        assert_eq!((daemons.due(), daemons.ids(told, pace)), (None, &[7][..]));
        let mut looks = 0;
        while let Some(due) = daemons.due() {
            daemons.go_on(due.minus(Nanos(1)), |_, _| panic!("too early"));
            daemons.go_on(due, |id, whose| looks += u32::from((id, whose) == (7, pace)));
        }
        assert_eq!(looks, 50, "of 10 ms each");
    }
}
