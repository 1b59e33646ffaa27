//! Writes back what members wrote through daemons that serve files (FUSE). Exists for `eval/benches/served.py`, where the highest 5 s
//! had 6.3 times the limit without it.
//!
//! A daemon keeps what it is told to write dirty in files of its own. Write-back that a member
//! starts ends at the daemon, and waiting for each small file (fdatasync(2)) costs the disk's
//! journal more than the file. So what the user's own daemons have written is written back as if
//! they were members. They are never held: others may wait for them.

use discnice_estimator::{CallKind, FileSystem};
use discnice_ledger::{Class, Direction};
use discnice_units::Moment;

use crate::tuning;
use crate::writeback::WriteBack;
use crate::writeback::portions::Pace;

/// What a class has written through daemons.
#[derive(Debug, Default)]
pub(crate) struct FuseWrites {
    /// Bytes, when they were told of it last.
    told: u64,
    /// All that the class had written when this was looked through last: a class that writes nothing is not in any cache.
    charged: u64,
    due: Moment,
}

impl FuseWrites {
    /// Has it written back when it is a portion.
    pub(crate) fn follow(&mut self, now: Moment, class: &Class, write_back: &WriteBack) {
        if now < self.due || !class.is_limited() {
            return;
        }
        self.due = now.plus(tuning::writeback::FUSE_CLASS_LOOK);
        write_back.enter_made(class);
        let charged = class.direction(Direction::Write).total();
        if charged == std::mem::replace(&mut self.charged, charged) {
            return;
        }
        let (pace, written) = (Pace::of(class), written(class));
        if written.saturating_sub(self.told) >= pace.portion {
            self.told = written;
            write_back.of_daemons(pace);
        }
    }
}

/// Bytes that the class is predicted to have written on file systems that daemons serve: no account has them.
fn written(class: &Class) -> u64 {
    let served = class.estimation().file_systems().iter().filter(|fs| fs.served().is_some());
    let on = |fs: &FileSystem| {
        fs.compared(CallKind::Write).predicted.saturating_add(fs.compared(CallKind::Copy).predicted)
    };
    served.map(on).fold(0, u64::saturating_add)
}
