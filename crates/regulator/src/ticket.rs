//! What a call is predicted to cost, and what is reserved for it.

use discnice_estimator::CallKind;
use discnice_estimator::file_systems::OTHERS;

use crate::File;

/// What a call is predicted to cost the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Bytes read.
    pub(crate) read: u64,
    /// Bytes written, now or later.
    pub(crate) write: u64,
    /// The slot of the file system.
    pub(crate) slot: usize,
    pub(crate) kind: CallKind,
}

impl Forecast {
    /// Forecast of a call that nothing was predicted for.
    pub(crate) const NONE: Self = Self { read: 0, write: 0, slot: OTHERS, kind: CallKind::Other };

    pub(crate) const fn sum(self) -> u64 {
        self.read.saturating_add(self.write)
    }

    /// A call on this file that costs nothing as far as is known.
    pub(crate) fn nothing(file: &File, kind: CallKind) -> Self {
        let slot = file.identity().map_or(OTHERS, |(slot, _)| slot);
        Self { read: 0, write: 0, slot, kind }
    }
}

/// What was reserved for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "a reservation that is not settled is lost to the class"]
pub struct Ticket {
    /// Bytes to be read.
    pub read: u64,
    /// Bytes to be written.
    pub write: u64,
    /// Set if the account must be read after the call.
    pub look: bool,
    /// Predicted cost; `None` if nothing was asked.
    pub forecast: Option<Forecast>,
}

impl Ticket {
    /// Nothing was reserved, and nothing needs to be settled.
    pub const FREE: Self = Self { read: 0, write: 0, look: false, forecast: None };
    /// Nothing was reserved, but the cost is not known.
    pub const OPEN: Self = Self { look: true, ..Self::FREE };

    /// What was predicted, reserved.
    pub(crate) const fn of(forecast: Forecast) -> Self {
        Self { read: forecast.read, write: forecast.write, look: true, forecast: Some(forecast) }
    }

    /// Returns true if an amount was reserved or predicted that must be settled.
    #[must_use]
    pub const fn is_due(&self) -> bool {
        self.read | self.write > 0
    }
}
