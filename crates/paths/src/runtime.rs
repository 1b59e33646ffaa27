//! The private directory of what lives no longer than the machine runs: sockets, locks, names of
//! classes.
//!
//! The user's own `$XDG_RUNTIME_DIR` is the usual place. Without a session (cron, ssh without
//! logind) it is not there, and with `sudo -E` or `su` it belongs to another user; then the next
//! place serves. In a place that all users share, another user may have taken our name; then a
//! directory with an unpredictable name is made, and found again by its owner.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use discnice_sys::process::user;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::absolute;
use crate::chain::{self, Base};
use crate::private::{Private, names};

/// The IPC namespace that the machine starts with. `PROC_IPC_INIT_INO`, include/linux/proc_ns.h
const FIRST_SPACE: &str = "ipc:[4026531839]";
/// Places for a directory that all users share, most transient first.
const SHARED: [&str; 3] = ["/tmp", "/dev/shm", "/var/tmp"];

/// The runtime directory, where it is kept open.
static KEPT: OnceLock<Private> = OnceLock::new();

/// Returns the user's private runtime directory, creating it if missing:
/// `$XDG_RUNTIME_DIR/discnice`, `/run/user/UID/discnice`, for the superuser `/run/discnice`, or
/// else a directory `discnice-UID` or `discnice-UID.RANDOM` in `/tmp`, `/dev/shm` or `/var/tmp`, or
/// `run` in `~/.cache/discnice`. It is this user's and closed to all others, and no other user can
/// put another one in its place.
///
/// # Errors
/// No place qualifies; says why for the first.
pub fn runtime() -> io::Result<Private> {
    KEPT.get().and_then(Private::again).map_or_else(find, Ok)
}

/// Keeps the runtime directory open, so that [`runtime`] need not find it anew each time: for a program that asks several
/// times while it starts.
pub fn keep_runtime() {
    if KEPT.get().is_none()
        && let Ok(found) = find()
    {
        // Another thread kept it meanwhile.
        let _ = KEPT.set(found);
    }
}

fn find() -> io::Result<Private> {
    let (own, shared) = ("discnice".to_owned(), format!("discnice-{}", user()));
    let session = absolute("XDG_RUNTIME_DIR").map(|base| (base, &own));
    let usual = ["/run/user/".to_owned() + &user().to_string(), "/run".to_owned()];
    let places = session
        .into_iter()
        .chain(usual.into_iter().map(|base| (base.into(), &own)))
        .chain(SHARED.into_iter().map(|base| (PathBuf::from(base), &shared)));
    let mut first = None;
    for (path, name) in places {
        match chain::open(&path).and_then(|base| if_own(base, name == &own)) {
            Ok(base) => match place_in(&base, name) {
                Ok(private) => return Ok(private),
                Err(error) if is_short(&error) => return Err(error),
                Err(error) => first = first.or(Some(error)),
            },
            Err(error) if is_short(&error) => return Err(error),
            Err(error) => first = first.or(Some(error)),
        }
    }
    at_home().map_err(|error| first.unwrap_or(error))
}

/// The name of something that is about System V memory, which programs in one IPC namespace share and others must
/// not: the same in the machine's own namespace, with a number in others. ipc_namespaces(7)
#[must_use]
pub fn name_in_space(name: &str) -> String {
    let space = fs::read_link("/proc/self/ns/ipc").unwrap_or_default();
    match space.to_str() {
        Some(space) if !space.is_empty() && space != FIRST_SPACE => {
            let number: String = space.chars().filter(char::is_ascii_digit).collect();
            format!("{name}-{number}")
        }
        _ => name.to_owned(),
    }
}

/// Returns true if a place could not be examined because descriptors or memory are short for the
/// moment: in another place this process would meet no other of its user.
fn is_short(error: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| short.contains(&errno))
}

fn if_own(base: Base, wanted: bool) -> io::Result<Base> {
    if !wanted || base.is_own() {
        return Ok(base);
    }
    let why = format!("{}: it belongs to another user", base.path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// A directory below the home: what is there stays after the machine was started anew.
fn at_home() -> io::Result<Private> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no home directory");
    let cache = crate::below("XDG_CACHE_HOME", ".cache").ok_or_else(missing)?;
    crate::private_directory(&cache)?;
    place_in(&chain::open(&cache)?, "run")
}

/// Returns our directory in a place: the one of this name, or, where that is another user's, the
/// first of ours with a name that begins with it.
fn place_in(base: &Base, name: &str) -> io::Result<Private> {
    let directory = base.directory.as_fd();
    let taken = match Private::enter(directory, name, base.path.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        entered => return entered,
    };
    let prefix = format!("{name}.");
    if let Some(found) = first_of_ours(base, &prefix)? {
        return Ok(found);
    }
    let made = format!("{prefix}{:016x}", RandomState::new().build_hasher().finish());
    Private::enter(directory, &made, base.path.join(&made)).map_err(|_| taken)?;
    // Another process may have made one meanwhile: all take the same.
    let found = first_of_ours(base, &prefix)?.ok_or(io::ErrorKind::NotFound)?;
    if found.path() != base.path.join(&made) {
        // If it is used already it is not empty, and stays.
        let _ = unlinkat(directory, made.as_str(), AtFlags::REMOVEDIR);
    }
    Ok(found)
}

fn first_of_ours(base: &Base, prefix: &str) -> io::Result<Option<Private>> {
    let mut names = names(base.directory.as_fd())?;
    names.retain(|name| name.starts_with(prefix.as_bytes()));
    names.sort_unstable();
    let ours = |name: &Vec<u8>| {
        let name = OsStr::from_bytes(name);
        Private::existing(base.directory.as_fd(), name, base.path.join(name)).ok()
    };
    Ok(names.iter().find_map(ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_name_that_is_taken_is_gone_around_and_the_way_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let base = chain::open(folder.path()).unwrap();
        assert_eq!(place_in(&base, "discnice").unwrap().path(), folder.path().join("discnice"));
        // As another user's, which a test without privilege cannot make.
        fs::set_permissions(folder.path().join("discnice"), PermissionsExt::from_mode(0o777))
            .unwrap();
        let open = folder.path().join("discnice.0-open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("discnice.0-file"), "").unwrap();
        let around = place_in(&base, "discnice").unwrap();
        assert!(around.path().to_str().unwrap().contains("/discnice."), "{around:?}");
        assert_eq!(place_in(&base, "discnice").unwrap().path(), around.path());
    }

    #[test]
    fn all_that_begin_at_once_take_the_same() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("discnice"), "taken").unwrap();
        let found: Vec<PathBuf> = std::thread::scope(|scope| {
            let begin = || {
                let base = chain::open(folder.path()).unwrap();
                place_in(&base, "discnice").unwrap();
                std::thread::sleep(std::time::Duration::from_millis(100));
                place_in(&base, "discnice").unwrap().path().to_owned()
            };
            let all: Vec<_> = (0..16).map(|_| scope.spawn(begin)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(found.iter().all(|path| *path == found[0]), "{found:?}");
    }
}
