//! The file that keeps the figures.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Version of the file's layout; a file of another version is measured anew.
pub const VERSION: u32 = 1;
/// A longer file is no profile.
const LONGEST: u64 = 1 << 22;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureName {
    /// Reading the fast timer once.
    TimerCost,
    /// Allocating and zeroing a page, at its first touch.
    PageZeroing,
    /// Writing a byte of a resident page.
    MemoryAccess,
    /// Writing a byte of a page in swap.
    SwapAccess,
    /// Reading a page from the page cache.
    CacheHit,
    /// Reading a page that is not in the page cache.
    CacheMiss,
    /// Moving to another place of the device, beyond the time of the transfer.
    Seek,
    /// Reading in a row.
    SequentialRead,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FigureUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
}

impl fmt::Display for FigureUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanoseconds => "ns",
            Self::BytesPerSecond => "B/s",
        })
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub name: FigureName,
    /// Lower quartile of the repetitions; of a rate, the upper. What disturbs only makes slower.
    pub value: f64,
    /// Its unit, and that of the spread.
    pub unit: FigureUnit,
    /// Standard deviation of the repetitions without outliers.
    pub spread: f64,
    /// Repetitions.
    pub samples: u64,
    /// Device as `MAJOR:MINOR` of stat(2); none if it is of the machine as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// File system on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// When, in RFC 3339.
    pub date: String,
}

/// What the kernel's account of a file system can be trusted for: bytes that it charged to us for
/// each byte that was due. About 1 is exact, 0 is silent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trust {
    /// Device as `MAJOR:MINOR`.
    pub device: String,
    /// File system type.
    pub file_system: String,
    /// Charged for each byte of a cold read; none if pages never leave the cache, as on tmpfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_frac: Option<f64>,
    /// Charged for each byte newly written.
    pub writes_frac: f64,
    /// Charged for each byte written again while still dirty; should be 0.
    pub rewrites_frac: f64,
    /// Written by the device for each small file that is made, beside its data: journal, inode tables,
    /// directories. None where no device is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_overhead_bytes: Option<u64>,
    /// Written by the device for each small file that is made, beside what the kernel charges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_uncharged_bytes: Option<u64>,
    /// Like `file_overhead_bytes`, for a file of 1 KiB, beside a page: below zero where a file
    /// system keeps it among its own data, so that the page is never written. None where this was
    /// not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiny_file_overhead_bytes: Option<i64>,
    /// Written besides for the first file: the transaction's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_bytes: Option<u64>,
    /// True if cachestat(2) counts the pages that are cached.
    pub cachestat: bool,
    /// True if mincore(2) sees the pages that are cached.
    pub mincore: bool,
    /// When, in RFC 3339.
    pub date: String,
}

/// All that is known of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`].
    pub version: u32,
    /// Kernel release on which it was measured.
    pub kernel: String,
    /// Measured although the machine was busy.
    pub while_busy: bool,
    /// Figures of the machine and of its devices.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
    /// What to trust, by file system.
    #[serde(default, rename = "trust")]
    pub trusts: Vec<Trust>,
}

/// A profile to be, beside the place where it will be: known to be writable before anything is
/// measured, and put there in one step, so that a reader sees the old one or the new one.
#[derive(Debug)]
pub struct Draft {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl Draft {
    /// Begins one, in a folder that is made if necessary. A symbolic link stays, and what it leads to is written.
    ///
    /// # Errors
    /// As the system calls; there is something else than a regular file at its place.
    pub fn at(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                return Err(io::Error::other("it is no regular file"));
            }
            _ => {}
        }
        let path = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_owned() };
        let dir = discnice_paths::folder_of(&path);
        fs::create_dir_all(dir)?;
        Ok(Self { file: tempfile::NamedTempFile::new_in(dir)?, path })
    }

    //= gray-box/5-repository
    /// Writes it.
    ///
    /// # Errors
    /// As the system calls.
    pub fn save(mut self, profile: &Profile) -> io::Result<()> {
        let text = toml::to_string(profile).map_err(io::Error::other)?;
        let head = "# Written by discnice calibrate. Figures are the better quartiles; spread is one\n\
                    # standard deviation in the same unit; device is of stat(2).\n";
        self.file.write_all(head.as_bytes())?;
        self.file.write_all(text.as_bytes())?;
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Why there is no profile.
#[derive(Debug)]
pub enum LoadError {
    /// Never calibrated.
    Missing,
    /// The profile is of another version of this program.
    Version(u32),
    /// Not readable or not in the format.
    Broken(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no host profile; run discnice calibrate"),
            Self::Version(found) => {
                write!(f, "the host profile has version {found}; run discnice calibrate")
            }
            Self::Broken(why) => {
                write!(f, "unreadable host profile ({why}); run discnice calibrate")
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl Profile {
    /// Reads the profile of this user.
    ///
    /// # Errors
    /// As [`LoadError`] says.
    pub fn load() -> Result<Self, LoadError> {
        Self::load_from(&discnice_paths::profile().ok_or(LoadError::Missing)?)
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// As [`LoadError`] says.
    pub fn load_from(path: &Path) -> Result<Self, LoadError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let bytes = match discnice_paths::read_own(path, LONGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LoadError::Missing);
            }
            other => other.map_err(|error| LoadError::Broken(error.to_string()))?,
        };
        let text =
            String::from_utf8(bytes).map_err(|error| LoadError::Broken(error.to_string()))?;
        let broken = |error: toml::de::Error| LoadError::Broken(error.message().to_owned());
        let head: Head = toml::from_str(&text).map_err(broken)?;
        if head.version != VERSION {
            return Err(LoadError::Version(head.version));
        }
        toml::from_str(&text).map_err(broken)
    }

    /// Writes the profile.
    ///
    /// # Errors
    /// As the system calls.
    pub fn save_to(&self, path: &Path) -> io::Result<()> {
        Draft::at(path)?.save(self)
    }

    /// A figure of the machine as a whole.
    #[must_use]
    pub fn host(&self, name: FigureName) -> Option<f64> {
        let is = |figure: &&Figure| figure.name == name && figure.device.is_none();
        self.figures.iter().find(is).map(|figure| figure.value)
    }

    /// A figure of the device with this `st_dev`.
    #[must_use]
    pub fn device(&self, name: FigureName, dev: u64) -> Option<f64> {
        let device = device_name(dev);
        let is = |figure: &&Figure| {
            figure.name == name && figure.device.as_deref() == Some(device.as_str())
        };
        self.figures.iter().find(is).map(|figure| figure.value)
    }

    //= gray-box/4.1.2-access-unit
    /// What the device reads in twenty times its seek time, so that seeking costs 5 % at most: the
    /// paper's "near-peak performance from the disk".
    #[must_use]
    pub fn access_unit(&self, dev: u64) -> Option<u64> {
        let seek_seconds = self.device(FigureName::Seek, dev)? / 1e9;
        let bytes_per_second = self.device(FigureName::SequentialRead, dev)?;
        Some(((seek_seconds * bytes_per_second * 20.0) as u64).clamp(1 << 20, 64 << 20))
    }
}

/// The access unit of the device with this `st_dev`; 1 MiB without a host profile.
#[must_use]
pub fn access_unit(dev: u64) -> u64 {
    Profile::load().ok().and_then(|profile| profile.access_unit(dev)).unwrap_or(1 << 20)
}

impl Profile {
    /// What to trust on the file system with this `st_dev`.
    #[must_use]
    pub fn trust(&self, dev: u64) -> Option<&Trust> {
        let device = device_name(dev);
        self.trusts.iter().find(|trust| trust.device == device)
    }
}

/// `MAJOR:MINOR` of an `st_dev`.
pub(crate) fn device_name(dev: u64) -> String {
    format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev))
}

#[cfg(test)]
mod tests;
