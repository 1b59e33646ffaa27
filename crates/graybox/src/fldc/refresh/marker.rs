//! What a work area says of itself: the marker inside it and the names of its files.
//!
//! All of it is input, not truth: a reader accepts exactly what the writer of the same version
//! writes, and nothing else.

use std::fmt;
use std::str::FromStr;

/// Longest marker that is read; a longer one is no marker.
pub const MARKER_MAX: usize = 256;

/// First line of a marker: what made it, and the version of the format.
const HEAD: &str = "discnice-refresh 2";

/// A file or directory as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Device of the file system, major and minor.
    pub dev: (u32, u32),
    /// Inode number.
    pub ino: u64,
    /// Time of birth, seconds and nanoseconds; zeros where the file system has none.
    pub born: (i64, u32),
}

impl Identity {
    /// Returns true if this is the file seen as `now`, maybe after a reboot: that gives disks other
    /// device numbers, but files neither another inode number nor another time of birth.
    #[must_use]
    pub fn is_still(&self, now: &Self) -> bool {
        let known = self.born != (0, 0);
        (self.ino, self.born) == (now.ino, now.born) && (known || self.dev == now.dev)
    }
}

/// Contents of the marker: what a work area belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// User that made the work area in a refresh.
    pub owner: u32,
    /// Directory that is refreshed.
    pub directory: Identity,
    /// The work area itself: a marker that was moved into another directory does not fit.
    pub area: Identity,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name, of: Identity| {
            let Identity { dev: (major, minor), ino, born: (seconds, nanos) } = of;
            writeln!(f, "{name} {major}:{minor} {ino} {seconds}.{nanos}")
        };
        writeln!(f, "{HEAD}\nowner {}", self.owner)?;
        line(f, "directory", self.directory)?;
        line(f, "area", self.area)
    }
}

impl Marker {
    /// Reads a marker; `None` for anything but what [`Marker`]'s `Display` writes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MARKER_MAX {
            return None;
        }
        let mut lines = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEAD {
            return None;
        }
        let owner = number(lines.next()?.strip_prefix("owner ")?)?;
        let directory = identity(lines.next()?.strip_prefix("directory ")?)?;
        let area = identity(lines.next()?.strip_prefix("area ")?)?;
        lines.next().is_none().then_some(Self { owner, directory, area })
    }
}

fn identity(text: &str) -> Option<Identity> {
    let mut parts = text.split(' ');
    let (major, minor) = parts.next()?.split_once(':')?;
    let ino = number(parts.next()?)?;
    let born = time_of(numbers(parts.next()?)?)?;
    let dev = (number(major)?, number(minor)?);
    parts.next().is_none().then_some(Identity { dev, ino, born })
}

/// A number as it is written: `+1` and `01` are none.
fn number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// Numbers separated by dots.
fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut parts = text.split('.');
    for slot in &mut found {
        *slot = number(parts.next()?)?;
    }
    parts.next().is_none().then_some(found)
}

/// A copy that waits in the work area, or the original that was exchanged for it. Its name tells
/// which of the two it is: the exchange swaps inodes, not names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staged {
    /// Inode of the original.
    pub old: u64,
    /// Inode of the copy.
    pub new: u64,
    /// Size, owner, group, mode and modification time that both have.
    pub facts: Facts,
}

/// What tells that a file is as it was when it was copied, whatever its name and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Size in bytes.
    pub size: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Type and permissions.
    pub mode: u32,
    /// Modification time: seconds, nanoseconds.
    pub mtime: (i64, u32),
}

/// A directory with entries being exchanged, and what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touched {
    /// Inode of the directory.
    pub ino: u64,
    /// Modification time: seconds, nanoseconds.
    pub mtime: (i64, u32),
    /// Hash of its names and inodes.
    pub entries: u64,
}

/// A file of the work area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkFile {
    /// `t-N`: being made.
    Making(u64),
    /// `f-…`: see [`Staged`].
    Staged(Staged),
    /// `d-…`: see [`Touched`].
    Touched(Touched),
}

impl fmt::Display for WorkFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Making(number) => write!(f, "t-{number}"),
            Self::Staged(Staged { old, new, facts }) => {
                let Facts { size, uid, gid, mode, mtime: (seconds, nanos) } = facts;
                write!(f, "f-{old}.{new}.{size}.{uid}.{gid}.{mode}.{seconds}.{nanos}")
            }
            Self::Touched(Touched { ino, mtime: (seconds, nanos), entries }) => {
                write!(f, "d-{ino}.{seconds}.{nanos}.{entries:016x}")
            }
        }
    }
}

impl WorkFile {
    /// Reads a file name; `None` for anything but what [`WorkFile`]'s `Display` writes.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(rest) = name.strip_prefix("t-") {
            return Some(Self::Making(number(rest)?));
        }
        if let Some(rest) = name.strip_prefix("f-") {
            return staged(rest).map(Self::Staged);
        }
        let (rest, hash) = name.strip_prefix("d-")?.rsplit_once('.')?;
        let entries = u64::from_str_radix(hash, 16).ok()?;
        let (ino, time) = rest.split_once('.')?;
        let touched = Touched { ino: number(ino)?, mtime: time_of(numbers(time)?)?, entries };
        (format!("{entries:016x}") == hash).then_some(Self::Touched(touched))
    }
}

fn staged(text: &str) -> Option<Staged> {
    let mut parts = text.splitn(3, '.');
    let (old, new) = (number(parts.next()?)?, number(parts.next()?)?);
    let (size, rest) = parts.next()?.split_once('.')?;
    let [uid, gid, mode, seconds, nanos] = numbers(rest)?;
    let small = |number: i64| u32::try_from(number).ok();
    let facts = Facts {
        size: number(size)?,
        uid: small(uid)?,
        gid: small(gid)?,
        mode: small(mode)?,
        mtime: time_of([seconds, nanos])?,
    };
    Some(Staged { old, new, facts })
}

fn time_of([seconds, nanos]: [i64; 2]) -> Option<(i64, u32)> {
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some((seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identities() -> impl Strategy<Value = Identity> {
        (any::<(u32, u32)>(), any::<u64>(), any::<i64>(), 0..1_000_000_000u32)
            .prop_map(|(dev, ino, seconds, nanos)| Identity { dev, ino, born: (seconds, nanos) })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(owner: u32, directory in identities(), area in identities()) {
            let marker = Marker { owner, directory, area };
            let text = marker.to_string();
            prop_assert!(text.len() <= MARKER_MAX);
            prop_assert_eq!(Marker::parse(text.as_bytes()), Some(marker));
            // Cut short or with a byte more it is none.
            for cut in 0..text.len() {
                prop_assert_eq!(Marker::parse(&text.as_bytes()[..cut]), None);
            }
            prop_assert_eq!(Marker::parse(format!("{text}\n").as_bytes()), None);
        }

        #[test]
        fn names_are_read_as_written(
            numbers: [u64; 4], ids: [u32; 3], seconds: i64, nanos in 0..1_000_000_000u32,
        ) {
            let [old, new, size, entries] = numbers;
            let [uid, gid, mode] = ids;
            let mtime = (seconds, nanos);
            let facts = Facts { size, uid, gid, mode, mtime };
            let all = [
                WorkFile::Making(old),
                WorkFile::Staged(Staged { old, new, facts }),
                WorkFile::Touched(Touched { ino: new, mtime, entries }),
            ];
            for entry in all {
                let name = entry.to_string();
                prop_assert!(name.len() < 255);
                prop_assert_eq!(WorkFile::parse(name.as_bytes()), Some(entry));
            }
        }

        #[test]
        fn whatever_is_accepted_is_what_would_be_written(
            name in "[tfd]-[0-9a-f+.-]{0,60}", text in "(discnice-refresh [0-9]\n)?(owner [0-9]{1,3}\n)?.{0,40}",
        ) {
            if let Some(entry) = WorkFile::parse(name.as_bytes()) {
                prop_assert_eq!(entry.to_string(), name);
            }
            if let Some(marker) = Marker::parse(text.as_bytes()) {
                prop_assert_eq!(marker.to_string(), text);
            }
        }
    }
}
