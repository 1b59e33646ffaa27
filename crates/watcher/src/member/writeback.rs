//! What one process dirtied and has on its way to the disk.

use discnice_ledger::Class;
use discnice_regulator::{Backlog, left_of};
use discnice_units::Moment;

use crate::tuning;
use crate::writeback::WriteBack;
use crate::writeback::portions::Pace;

/// The write-back of one process.
#[derive(Debug, Default)]
pub(super) struct Writeback {
    /// Bytes dirtied since write-back was started last.
    dirtied: u64,
    /// What it has on its way to a disk while its class gives way.
    backlog: Backlog,
    /// Until when it waits for that at the longest, while it does.
    pub(super) awaits_until: Option<Moment>,
}

impl Writeback {
    /// Notes bytes that were dirtied, and bytes that were dropped unwritten.
    pub(super) fn note(&mut self, dirtied: u64, dropped: u64) {
        self.dirtied = (self.dirtied + dirtied).saturating_sub(dropped);
    }

    /// Has a portion written back if one was dirtied. Where the class gives way the process stands until little of that is
    /// on its way, too; then returns until when at the longest.
    pub(super) fn start(
        &mut self,
        now: Moment,
        id: u32,
        class: &Class,
        helper: &WriteBack,
    ) -> Option<Moment> {
        if !(class.is_limited() || class.yields()) {
            return None;
        }
        let pace = Pace::of(class);
        let is_let_go = class.yields() && pace.is_free();
        let most = if is_let_go { self.backlog.most() } else { pace.portion };
        if self.dirtied < most.min(pace.portion) {
            return None;
        }
        let bytes = std::mem::take(&mut self.dirtied);
        if !(is_let_go && self.backlog.add(now, bytes)) {
            helper.of(id, pace);
        } else if helper.await_written(id, pace, left_of(bytes)) {
            self.awaits_until = Some(now.plus(tuning::writeback::IN_FLIGHT_LONGEST));
            return self.awaits_until;
        }
        None
    }

    /// Ends the wait if little is on its way to the disk any more; returns whether it has ended.
    pub(super) fn end_wait(&mut self, now: Moment, id: u32, helper: &WriteBack) -> bool {
        let is_over = |until| now >= until || helper.is_written(id);
        let is_over = self.awaits_until.is_some_and(is_over);
        if is_over {
            self.awaits_until = None;
            self.backlog.clear(now);
        }
        is_over
    }
}
