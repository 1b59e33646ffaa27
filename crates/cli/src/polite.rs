//! What a job gets that was given no numbers: all of an idle machine, and a tenth of the disk while
//! others are busy, as the guests of Rate Windows (4, figure 4).

use std::os::unix::fs::MetadataExt;

use discnice_graybox::profile::{FigureName, Profile};
use discnice_ledger::policy::throttle::Thresholds;
use discnice_ledger::policy::{Limits, Resource, When};
use discnice_registry::Board;
use discnice_units::Rate;

use crate::config::Config;

/// The bandwidth of a disk that was never measured: a hard disk's.
const UNMEASURED: Rate = Rate::per_second(100_000_000);
/// A guest's part of the bandwidth is one in so many.
const PART: u64 = 10;

//= rate-windows/4-guest-rate
/// The limits of a job that was given none.
pub fn limits() -> Limits {
    let tenth = Rate::per_second(bandwidth().get() / PART);
    let busy = Limits::UNLIMITED.with(Resource::Total, tenth).with_when(When::Busy);
    busy.with_guest(true).with_cache_protected(true).with_uplink_yielded(true)
}

/// The bandwidth of the disk below the working folder, as `discnice calibrate` measured it; of the
/// fastest that it did measure, if it did not measure that one.
pub fn bandwidth() -> Rate {
    let Ok(profile) = Profile::load() else { return UNMEASURED };
    let here = here(&profile);
    let any = || {
        let reads = profile.figures.iter().filter(|one| one.name == FigureName::SequentialRead);
        reads.map(|figure| figure.value).reduce(f64::max)
    };
    let measured = here.or_else(any).filter(|rate| *rate >= 1e6);
    measured.map_or(UNMEASURED, |rate| Rate::per_second(rate as u64))
}

/// The bandwidth of the disk below the working directory, if it was measured.
pub fn measured_here() -> Option<Rate> {
    here(&Profile::load().ok()?).map(|rate| Rate::per_second(rate as u64))
}

fn here(profile: &Profile) -> Option<f64> {
    let device = std::fs::metadata(".").ok()?.dev();
    profile.device(FigureName::SequentialRead, device)
}

/// Prepares the board for a class that gives way: from when on others count as busy.
///
/// # Errors
/// There is no board; such a class is then always held.
pub fn prepare(limits: &Limits) -> anyhow::Result<()> {
    if limits.when() != When::Busy {
        return Ok(());
    }
    let found = Board::find_or_create()?;
    // A file that cannot be read is told of where its limits are needed.
    let busy = Config::load().map(|config| config.busy()).unwrap_or_default();
    found.board.set_thresholds(&busy.applied(&Thresholds::of(bandwidth())));
    let network = [Resource::Net, Resource::NetUp, Resource::NetDown];
    if network.into_iter().any(|one| !limits.rate(one).is_unlimited()) {
        found.board.want_network();
    }
    Ok(())
}
