//! The estimator's part of a class, and the bit that says that it has the only word.

use discnice_estimator::{Estimation, Estimator, Modules, Totals};

use crate::layout::{Class, header};
use crate::primitive::Ordering;

impl Class {
    /// Chooses the source of charges (account, prediction or both) and the parts of the prediction
    /// that are used. Descriptors that a program has open go on as they are.
    pub fn choose(&self, estimator: Estimator, modules: Modules) {
        self.estimation.choose(estimator, modules);
        if estimator == Estimator::Predict {
            self.header.limited.fetch_or(header::PREDICTING, Ordering::Release);
        } else {
            self.header.limited.fetch_and(!header::PREDICTING, Ordering::Release);
        }
        self.header.changes.fetch_add(1, Ordering::Release);
    }

    /// What the class's disk I/O is predicted to be, and how that compares to the account.
    #[must_use]
    pub fn estimation(&self) -> &Estimation {
        &self.estimation
    }

    /// Predicted bytes and the account's, since the class was made.
    #[must_use]
    pub fn prediction(&self) -> Totals {
        self.estimation.totals()
    }

    /// Returns true if charges follow the prediction alone; then every call is looked at, with or
    /// without a threshold.
    #[inline]
    #[must_use]
    pub fn predicts(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & header::PREDICTING != 0
    }
}
