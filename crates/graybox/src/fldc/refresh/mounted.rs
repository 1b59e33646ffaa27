//! Files of a directory that mounts elsewhere hold on to: one that is mounted by itself, as into a container, and one that
//! is covered by a mount of another mount namespace.
//!
//! A mount is of an inode. After an exchange the first would go on to show the original, without a name, and what is
//! written there would be lost with it; the second would be gone, as the kernel removes it with the original.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::walk::mount_of;
use crate::mountinfo::plain;

/// Paths below a directory that mounts of any process hold on to, from the directory on. Files and directories may be among
/// them.
pub fn below(dir: BorrowedFd<'_>) -> HashSet<PathBuf> {
    let own = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let Some((device, base)) = place_of(dir, &parse(&own)) else { return HashSet::new() };
    let mut found = HashSet::new();
    for text in texts() {
        let mounts = parse(&text);
        for (on, path) in mounts.values().flat_map(|mount| held_by(mount, &mounts)) {
            if on == device
                && let Ok(below) = path.strip_prefix(&base)
            {
                found.insert(below.to_owned());
            }
        }
    }
    found
}

/// One mount, by proc_pid_mountinfo(5).
struct Mount<'a> {
    parent: &'a [u8],
    device: &'a [u8],
    /// What of its file system it shows.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

impl<'a> Mount<'a> {
    /// Its number and itself: `ID PARENT DEVICE ROOT POINT OPTIONS...`
    fn parse(line: &'a [u8]) -> Option<(&'a [u8], Self)> {
        let mut words = line.split(|byte| *byte == b' ');
        let (id, parent, device) = (words.next()?, words.next()?, words.next()?);
        let (root, point) = (plain(words.next()?), plain(words.next()?));
        Some((id, Self { parent, device, root, point }))
    }
}

/// The mounts in a text as that of `/proc/PID/mountinfo`, by number.
fn parse(text: &[u8]) -> HashMap<&[u8], Mount<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()
}

/// The different texts that processes have: those in one namespace mostly have the same.
fn texts() -> HashSet<Vec<u8>> {
    let is_process = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| is_process(&entry.file_name()));
    processes.filter_map(|process| fs::read(process.path().join("mountinfo")).ok()).collect()
}

/// The file system in which a directory lies, and its path there.
fn place_of<'a>(
    dir: BorrowedFd<'_>,
    mounts: &HashMap<&[u8], Mount<'a>>,
) -> Option<(&'a [u8], PathBuf)> {
    let mount = mounts.get(mount_of(dir).ok()?.as_bytes())?;
    let path = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()?;
    Some((mount.device, mount.root.join(path.strip_prefix(&mount.point).ok()?)))
}

/// What a mount shows, and what it covers: file systems and paths in them.
fn held_by<'a>(
    mount: &Mount<'a>,
    mounts: &HashMap<&[u8], Mount<'a>>,
) -> impl Iterator<Item = (&'a [u8], PathBuf)> {
    let covered = mounts.get(mount.parent).and_then(|below| {
        let path = mount.point.strip_prefix(&below.point).ok()?;
        Some((below.device, below.root.join(path)))
    });
    [Some((mount.device, mount.root.clone())), covered].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_holds_on_to_what_it_shows_and_what_it_covers() {
        let text = b"\
22 1 254:0 /@ / rw shared:1 - btrfs /dev/vda rw
40 22 254:0 /@/home/me/a\\040file /srv/file rw - btrfs /dev/vda rw
41 22 254:0 /@/home/me/app /app rw - btrfs /dev/vda rw
42 41 0:30 /secret /app/.env rw - tmpfs none rw
no line of it
";
        let mounts = parse(text);
        let held = |id: &[u8]| held_by(&mounts[id], &mounts).collect::<Vec<_>>();
        let on_disk = |path: &str| (&b"254:0"[..], PathBuf::from(path));
        assert_eq!(held(b"40"), [on_disk("/@/home/me/a file"), on_disk("/@/srv/file")]);
        assert_eq!(
            held(b"42"),
            [(&b"0:30"[..], PathBuf::from("/secret")), on_disk("/@/home/me/app/.env")]
        );
        assert_eq!(held(b"22"), [on_disk("/@")], "what is below the first is not told");
        assert_eq!(mounts.len(), 4);
    }
}
