//! `discnice calibrate`: measures the machine and keeps the host profile (gray-box paper,
//! section 5).

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::ending;
use crate::output::{self, say, tell};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use discnice_graybox::input::{reason, shown};
use discnice_graybox::profile::{Calibration, Draft, Figure, FigureUnit, Profile, busy, calibrate};
use discnice_units::{Bytes, Nanos, Rate};

const EXAMPLES: &str = "\
Examples:
  discnice calibrate                          the disks of the current folder, home and /var/tmp
  discnice calibrate --dir /srv --dir ~       the disks of these folders";

/// Measure the disks of this machine and write the host profile
///
/// The profile is what `--disk 10%` refers to. Measuring takes at most a minute, in which the machine must do nothing else.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Calibrate {
    /// Measure the device and file system of this folder; may be repeated [default: the current folder, home and /var/tmp]
    #[arg(long = "dir", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write the profile to this file instead of the cache folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure on a busy machine, too, and replace a profile that was measured on a quiet one
    #[arg(long)]
    force: bool,
}

const AT_MOST: Duration = Duration::from_secs(50);

impl Calibrate {
    /// Measures and writes.
    ///
    /// # Errors
    /// A busy machine; no place for the profile.
    pub fn run(self) -> Result<ExitCode> {
        let path = match self.output.or_else(discnice_paths::profile) {
            Some(path) => path,
            None => bail!("neither XDG_CACHE_HOME nor HOME is set; give --output FILE"),
        };
        for dir in &self.dirs {
            let why = match std::fs::metadata(dir) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => "it is no directory".into(),
                Err(error) => reason(&error),
            };
            bail!(
                "cannot calibrate {}: {why}; give a directory on the disk to measure",
                shown(dir)
            );
        }
        let unwritable = |error: io::Error| {
            let why = reason(&error);
            anyhow!("cannot write {}: {why}; give another place by --output FILE", shown(&path))
        };
        let asked_to_end = ending::asked_to_end()?;
        let draft = Draft::at(&path).map_err(unwritable)?;
        let noise = busy();
        if let Some(noise) = &noise
            && !self.force
        {
            bail!("{noise}; the figures would be wrong: wait, or use --force");
        }
        let named = !self.dirs.is_empty();
        let dirs = if named { self.dirs } else { default_dirs() };
        let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
        let calibration = Calibration {
            dirs: &dirs,
            at_most: AT_MOST,
            while_busy: noise.is_some(),
            asked_to_end: &asked_to_end,
        };
        let visible = output::is_watched();
        let mut all_well = true;
        let mut progress = |step: &str| {
            if visible {
                tell!("measuring {step} ...");
            }
        };
        let profile = calibrate(&calibration, &mut progress, &mut |dir, error| {
            if named {
                tell!("discnice: {}: {}", shown(dir), reason(error));
                all_well = false;
            }
        });
        let Some(profile) = profile else { bail!("interrupted; no profile was written") };
        draft.save(&profile).map_err(unwritable)?;
        print(&profile, &path)?;
        Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn default_dirs() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    std::iter::once(PathBuf::from(".")).chain(home).chain([PathBuf::from("/var/tmp")]).collect()
}

fn print(profile: &Profile, path: &Path) -> anyhow::Result<()> {
    for figure in &profile.figures {
        let name = format!("{:?}", figure.name);
        let place = match (&figure.file_system, &figure.device) {
            (Some(file_system), Some(device)) => format!("{file_system} on {device}"),
            _ => "machine".into(),
        };
        let value = quantity(figure, figure.value);
        let spread = figure.spread / figure.value.max(f64::MIN_POSITIVE) * 100.0;
        say!("{name:<15} {value:>12}  +- {spread:>4.1} %  {place}")?;
    }
    for trust in &profile.trusts {
        let percent = |frac: f64| format!("{:.0} %", frac * 100.0);
        say!(
            "{} on {}: of cold reads {} is charged, of writes {}, of rewrites {}; cachestat {}, mincore {}",
            trust.file_system,
            trust.device,
            trust.reads_frac.map_or("(never cold)".into(), percent),
            percent(trust.writes_frac),
            percent(trust.rewrites_frac),
            if trust.cachestat { "tells the truth" } else { "is wrong" },
            if trust.mincore { "tells the truth" } else { "is wrong" },
        )?;
        if let (Some(overhead), Some(uncharged)) =
            (trust.file_overhead_bytes, trust.file_uncharged_bytes)
        {
            let (overhead, uncharged) = (Bytes::new(overhead), Bytes::new(uncharged));
            say!(
                "a small file costs {overhead} beside its data, {uncharged} beside what is charged, the first one {} more",
                Bytes::new(trust.transaction_bytes.unwrap_or(0))
            )?;
            if let Some(less) = trust.tiny_file_overhead_bytes.filter(|bytes| *bytes < 0) {
                say!(
                    "of 1 KiB it costs {} less than the page that it dirties",
                    Bytes::new(less.unsigned_abs())
                )?;
            }
        }
    }
    Ok(say!("written to {}", shown(path))?)
}

fn quantity(figure: &Figure, value: f64) -> String {
    match figure.unit {
        FigureUnit::Nanoseconds if value < 100.0 => format!("{value:.1} ns"),
        FigureUnit::Nanoseconds => Nanos(value as u64).to_string(),
        FigureUnit::BytesPerSecond => Rate::per_second(value as u64).to_string(),
    }
}
