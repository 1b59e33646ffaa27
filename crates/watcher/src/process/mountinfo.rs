//! What `/proc/PID/mountinfo` says of the mounts that a process sees (proc_pid_mountinfo(5)): to read it never waits for a
//! file system.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use discnice_graybox::mountinfo::plain;

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Its number, which no other mount of the system has.
    pub(crate) id: u32,
    /// The number of its device, major in the upper half.
    pub(crate) device: u64,
    /// The folder that it is mounted on.
    pub(crate) point: PathBuf,
    /// The type of its file system.
    pub(crate) kind: OsString,
    /// The options of its file system.
    options: OsString,
}

impl Mount {
    /// `ID PARENT DEVICE ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS`
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let id = text(words.next()?)?.parse().ok()?;
        let device = number(text(words.nth(1)?)?, 10)?;
        let point = plain(words.nth(1)?);
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let kind = OsStr::from_bytes(words.next()?).to_owned();
        let options = OsStr::from_bytes(words.nth(1).unwrap_or_default()).to_owned();
        Some(Self { id, device, point, kind, options })
    }

    /// Whether its device is one of a driver, such as a disk: not a number that stands for the file system alone.
    pub(crate) const fn has_driver(&self) -> bool {
        self.device >> 32 != 0
    }

    /// The folders of which an overlayfs consists, as far as their whole paths are told.
    pub(crate) fn layers(&self) -> impl Iterator<Item = PathBuf> {
        let options = self.options.as_bytes().split(|byte| *byte == b',');
        let of_layers = options.filter_map(|option| {
            let (key, value) = option.split_at(option.iter().position(|byte| *byte == b'=')?);
            let names = [&b"lowerdir"[..], b"upperdir", b"datadir"];
            names.iter().any(|name| key.starts_with(name)).then(|| value.get(1..))?
        });
        let paths = of_layers.flat_map(|value| value.split(|byte| *byte == b':')).map(plain);
        paths.filter(|path| path.is_absolute())
    }
}

/// The mounts that a process sees, or this one if none is given, in the order in which they were made: a later one hides
/// an earlier one on the same folder.
pub(crate) fn of(id: Option<u32>) -> Vec<Mount> {
    let process = id.map_or_else(|| "self".to_owned(), |id| id.to_string());
    parse(&fs::read(format!("/proc/{process}/mountinfo")).unwrap_or_default())
}

/// The mounts in a text as that of `/proc/PID/mountinfo`.
pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()
}

fn text(word: &[u8]) -> Option<&str> {
    std::str::from_utf8(word).ok()
}

/// `major:minor`.
pub(crate) fn number(device: &str, radix: u32) -> Option<u64> {
    let (major, minor) = device.split_once(':')?;
    let parse = |digits| u64::from_str_radix(digits, radix).ok();
    Some(parse(major)? << 32 | parse(minor)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn mounts_are_told_with_their_folders_and_layers() {
        let text = b"\
22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
44 22 0:44 / /mnt/of\\040a rw shared:2 master:3 - overlay overlay rw,lowerdir=/a\\040b:l/C,upperdir=/d,workdir=/e
no line of it
";
        let found = parse(text);
        let [root, overlay] = &found[..] else { panic!("{found:?}") };
        assert_eq!((root.id, root.device, root.kind.as_bytes()), (22, 254 << 32, &b"ext4"[..]));
        assert_eq!(root.layers().count(), 0);
        assert_eq!((overlay.id, &*overlay.point), (44, Path::new("/mnt/of a")));
        let layers: Vec<_> = overlay.layers().collect();
        assert_eq!(layers, [Path::new("/a b"), Path::new("/d")], "a part of a path says nothing");
        assert_eq!(plain(b"a\\134b\\"), Path::new("a\\b\\"));
    }
}
