//! The bandwidth of the disk below the working directory, as `discnice calibrate` measured it.

use std::os::unix::fs::MetadataExt;

use discnice_graybox::profile::{FigureName, Profile};
use discnice_units::Rate;

/// The bandwidth of a disk that was never measured: a hard disk's.
const UNMEASURED: Rate = Rate::per_second(100_000_000);
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
