//! Whether the prediction or the account is charged.

use discnice_estimator::file_systems::OTHERS;
use discnice_estimator::{CallKind, Estimator, Verdict};
use discnice_ledger::member::Charged;

use crate::host::Host;
use crate::{Forecast, Regulator};

/// Trees of names, inodes and extents are read in blocks of 4 to 64 KiB, a few at a time. What is more was
/// mispredicted.
const NAMES_MOST: u64 = 128 << 10;

impl<H: Host> Regulator<'_, H> {
    /// Returns true if the prediction is charged on this file's file system, regardless of the
    /// account.
    pub(crate) fn trusts_prediction(&self, slot: usize) -> bool {
        match self.class.estimation().estimator() {
            Estimator::Predict => true,
            Estimator::Account => false,
            Estimator::Auto => {
                self.file_system(slot).is_some_and(|fs| fs.verdict() == Verdict::Silent)
            }
        }
    }

    /// The account that a call left since the last look, corrected by what was predicted: what is
    /// charged. Both are compared.
    pub(crate) fn judge(&self, forecast: Option<Forecast>, account: Charged) -> Charged {
        let estimator = self.class.estimation().estimator();
        if estimator == Estimator::Account {
            return account;
        }
        let made = forecast.unwrap_or(Forecast::NONE);
        let Some(fs) = self.file_system(made.slot) else { return account };
        let predicted = Charged { read: made.read, written: made.write };
        if estimator == Estimator::Predict {
            let by_faults = self.read_by_faults(made, account);
            let by_names = self.read_for_names(made, account.read.saturating_sub(by_faults));
            let read = account.read.saturating_sub(by_faults).saturating_sub(by_names);
            fs.note(made.kind, made.sum(), read.saturating_add(account.written));
            return predicted;
        }
        fs.note(made.kind, made.sum(), account.read.saturating_add(account.written));
        match (forecast.is_some(), fs.verdict()) {
            (false, _) | (_, Verdict::Accounted) => account,
            // What else was charged since the last look belongs to another file system.
            (_, Verdict::Silent) if made.write > 0 || made.kind == CallKind::Write => predicted,
            (_, Verdict::Silent) => Charged {
                read: predicted.read.saturating_add(account.read),
                written: predicted.written,
            },
            (_, Verdict::Undecided) => Charged {
                read: predicted.read.max(account.read),
                written: predicted.written.max(account.written),
            },
        }
    }

    /// Returns the bytes read by page faults since the last look, which are never predicted:
    /// everything in the account beyond the prediction for the call that led to this look. It thus
    /// does not count as an error of that prediction.
    fn read_by_faults(&self, made: Forecast, account: Charged) -> u64 {
        let faults = self.books.enter_faults(self.host.major_faults());
        let read = if faults > 0 { account.read.saturating_sub(made.read) } else { 0 };
        if let Some(fs) = self.file_system(OTHERS) {
            fs.note(CallKind::Other, 0, read);
        }
        read
    }

    /// What a look at a read found beyond its pages, which are known: calls on names before it have submitted it
    /// without waiting for it (btrfs reads leaves of its trees ahead), or the file system had to read where the
    /// pages are. It is what such calls are learnt from.
    fn read_for_names(&self, made: Forecast, read: u64) -> u64 {
        let beyond = read.saturating_sub(made.read);
        if made.kind != CallKind::Read || beyond == 0 || beyond > NAMES_MOST {
            return 0;
        }
        if let Some(fs) = self.file_system(OTHERS) {
            fs.note(CallKind::Metadata, 0, beyond);
        }
        beyond
    }
}
