//! How long the disk takes to read a directory, by the figures that are known of it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_graybox::fldc::refresh::Survey;
use discnice_graybox::fldc::refresh::worth;
use discnice_graybox::profile::{FigureName, Profile};
use discnice_units::Nanos;

use crate::output::counted;

/// The disk that the time is estimated for.
pub(super) struct Disk {
    pub(super) figures: worth::DiskFigures,
    name: &'static str,
}

impl Disk {
    /// As measured for the host profile, else a common one with 7200 turns a minute.
    pub(super) fn below(dir: &Path) -> Self {
        let known = || {
            let profile = Profile::load().ok()?;
            let dev = std::fs::metadata(dir).ok()?.dev();
            let figures = worth::DiskFigures {
                seek_seconds: profile.device(FigureName::Seek, dev)? / 1e9,
                bytes_per_second: profile.device(FigureName::SequentialRead, dev)?,
            };
            Some(Self { figures, name: "this disk" })
        };
        known().unwrap_or(Self {
            figures: worth::DiskFigures { seek_seconds: 0.008, bytes_per_second: 150e6 },
            name: "a turning disk",
        })
    }

    pub(super) fn describe(&self, survey: &Survey) -> String {
        let time = Nanos((self.figures.seconds(survey) * 1e9) as u64);
        format!(
            "{} in {}, {} to read all, about {time} on {}",
            counted(survey.files, "file", "files"),
            counted(survey.extents, "piece", "pieces"),
            counted(survey.seeks, "seek", "seeks"),
            self.name
        )
    }
}
