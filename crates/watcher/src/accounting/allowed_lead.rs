//! How far the account of a preloaded process may be ahead of its books before it is held from outside.

use discnice_units::Nanos;

use crate::accounting::unseen_io::Doing;
use crate::tuning;

/// What a preloaded process may be ahead of its books, and how long, before it is held.
pub(crate) struct Lead {
    /// More than this, for so long.
    pub(crate) bytes: u64,
    pub(crate) time: Nanos,
    /// More than this, and no time.
    pub(crate) most: u64,
}

/// A call that is in progress, or a few fast ones that it has not looked at yet; it takes less than this
/// to be settled after it did its I/O.
const STRICT: Lead = Lead {
    bytes: tuning::accounting::STRICT_LEAD,
    time: tuning::accounting::STRICT_LEAD_FOR,
    most: u64::MAX,
};
/// A process that may read by page faults alone, or by workers of the kernel, without a call of its
/// own. One that is in a long call must not be taken for it, as what it reserved would be charged
/// twice. One that is seen in a fault, and in no call, is taken for it sooner: [`UNSEEN`].
const RUNAWAY: Lead = Lead {
    bytes: tuning::accounting::RUNAWAY_LEAD,
    time: tuning::accounting::RUNAWAY_LEAD_FOR,
    most: u64::MAX,
};
/// A process that was seen in a fault, or waiting for the kernel's workers, and in no call. Books that are behind
/// for other reasons are settled within a call.
const UNSEEN: Lead = Lead {
    bytes: tuning::accounting::UNSEEN_LEAD,
    time: tuning::accounting::UNSEEN_LEAD_FOR,
    most: tuning::accounting::UNSEEN_LEAD_MOST,
};

impl Lead {
    /// Less is never too much.
    pub(crate) const LEAST: u64 = UNSEEN.bytes;

    /// What process `id` may be ahead, which is so much ahead.
    pub(crate) fn of(id: u32, ahead: u64, strict: bool) -> Self {
        if ahead >= UNSEEN.bytes && Doing::of(id) == Doing::Unseen {
            UNSEEN
        } else if strict {
            STRICT
        } else {
            RUNAWAY
        }
    }
}
