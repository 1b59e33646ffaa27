//! Where our library lies, and the copy of it that programs load.
//!
//! A program maps the file that it loads, so a file that is overwritten while programs run takes them with it. What is
//! loaded is therefore a copy in the user's private directory, named by its content, that nothing writes to again: an
//! upgrade makes another one, and the removal of the installed one leaves it where it is.

use std::ffi::CString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use discnice_paths::private_directory;
use discnice_sys::process::user;
use discnice_sys::procfs;
use discnice_units::Bytes;
use discnice_watcher::process::maps;
use rustix::fs::{OFlags, StatVfsMountFlags, fstatvfs};

use crate::fresh;

/// The library's file name.
const LIBRARY: &str = "libdiscnice.so";
/// The directory of its copies in the private one.
const COPIES: &str = "library";
/// What the name of a copy that is being made begins with.
const UNFINISHED: &str = ".new-";
/// What a copy may be used for.
const MODE: u32 = 0o500;
/// A copy that was not used for so long, and that no process has mapped, is removed.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest path that the library notes when it is loaded.
const LONGEST: usize = 1024;

/// Where our library lies: beside this program (a build tree) or where `make install` puts it.
///
/// # Errors
/// It is not there, or the dynamic linker could not be told its path.
pub fn installed() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib/discnice").join(LIBRARY)];
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    let Some(path) = found else {
        bail!(
            "{LIBRARY} is neither in {} nor in its ../lib/discnice; a package or `make install` installs it, `cargo install` does not",
            folder.display()
        );
    };
    Ok(path)
}

/// What the dynamic linker is to load: the copy of this library in the user's private directory, which is made if need
/// be; where that is not possible, the library itself.
///
/// # Errors
/// It is not installed, or the dynamic linker could not be told its path.
pub fn to_preload() -> anyhow::Result<PathBuf> {
    let installed = installed()?;
    let copy = discnice_paths::runtime().and_then(|directory| {
        let copy = copy_in(&directory.path().join(COPIES), &installed)?;
        let usable = copy.as_os_str().len() < LONGEST && is_speakable(&copy);
        usable.then_some(copy).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
    });
    let path = copy.unwrap_or(installed);
    if !is_speakable(&path) {
        bail!(
            "{}: the dynamic linker takes no path with spaces, colons or dollars; install DiscNice elsewhere",
            path.display()
        );
    }
    Ok(path)
}

/// Whether the dynamic linker can be told this path. ld.so(8), `LD_PRELOAD`
fn is_speakable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b": \t\n$".contains(byte))
}

/// The copy of the library at `installed` in the directory of copies.
fn copy_in(copies: &Path, installed: &Path) -> io::Result<PathBuf> {
    let source = File::open(installed)?;
    let before = source.metadata()?;
    let id = id(installed, &before)?;
    let copy = copies.join(format!("{id}-{LIBRARY}"));
    if is_good(&copy, Bytes::new(before.len())) {
        return Ok(copy);
    }
    private_directory(copies)?;
    let fresh = fresh::file(copies, UNFINISHED, 0o600)?;
    io::copy(&mut &source, &mut fresh.as_file())?;
    // One that was written to meanwhile is neither the old one nor the new one.
    let same = changes(&source.metadata()?) == changes(&before);
    if !same || self::id(fresh.path(), &before)? != id {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    fresh.as_file().set_permissions(Permissions::from_mode(MODE))?;
    fresh.persist(&copy)?;
    tidy(copies, &copy);
    let good = is_good(&copy, Bytes::new(before.len()));
    good.then_some(copy).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

/// By what a library is known: its build id, which the linker made of its content, and its size, which differs with
/// and without symbols.
fn id(library: &Path, meta: &Metadata) -> io::Result<String> {
    let path = CString::new(library.as_os_str().as_bytes())?;
    let id = discnice_regulator::startup::build_id(&path).ok_or(io::ErrorKind::InvalidData)?;
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{digits}-{:x}", meta.len()))
}

/// What changes when a file is written to.
fn changes(meta: &Metadata) -> (u64, i64, i64) {
    (meta.len(), meta.mtime(), meta.mtime_nsec())
}

/// Whether the file is a copy that we made, of which programs may map what is to be executed. It then counts as used.
fn is_good(copy: &Path, size: Bytes) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(copy) else {
        return false;
    };
    let Ok(meta) = file.metadata() else { return false };
    let ours = meta.is_file() && meta.uid() == user() && meta.mode() & 0o7777 == MODE;
    let executes =
        fstatvfs(&file).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let good = ours && meta.len() == size.get() && executes;
    if good && is_older(&meta, UNUSED / 24) {
        let _ = file.set_modified(SystemTime::now());
    }
    good
}

fn is_older(meta: &Metadata, age: Duration) -> bool {
    meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since > age))
}

/// Removes copies that nothing uses any more. It is called when there is a new one: after an upgrade.
fn tidy(copies: &Path, current: &Path) {
    for entry in fs::read_dir(copies).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.as_bytes();
        let is_copy = name.ends_with(LIBRARY.as_bytes());
        let ours = is_copy || name.starts_with(UNFINISHED.as_bytes());
        let old = entry.metadata().is_ok_and(|meta| is_older(&meta, UNUSED));
        if path != current && ours && old && !(is_copy && is_mapped(name)) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a process that may be looked at has a file of this name mapped.
fn is_mapped(name: &[u8]) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_it = |maps: String| maps.as_bytes().windows(name.len()).any(|part| part == name);
    // One that executes a program is about to map it.
    ids.into_iter().any(|id| procfs::is_executing(id) || maps(id).is_some_and(has_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with a library in it: what this test itself loads will do.
    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (installed, copies) = (folder.path().join(LIBRARY), folder.path().join(COPIES));
        fs::copy(std::env::current_exe().unwrap(), &installed).unwrap();
        (folder, installed, copies)
    }

    #[test]
    fn a_copy_is_made_once_and_renewed_when_it_is_not_ours() {
        let (_folder, installed, copies) = place();
        let copy = copy_in(&copies, &installed).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&installed).unwrap());
        let first = fs::metadata(&copy).unwrap();
        assert_eq!((first.mode() & 0o7777, first.uid()), (MODE, user()));
        assert_eq!(copy_in(&copies, &installed).unwrap(), copy);
        assert_eq!(fs::metadata(&copy).unwrap().ino(), first.ino(), "the same file");
        for spoil in [
            |copy: &Path| fs::set_permissions(copy, Permissions::from_mode(0o755)).unwrap(),
            |copy: &Path| {
                fs::remove_file(copy).unwrap();
                std::os::unix::fs::symlink("/etc/passwd", copy).unwrap();
            },
            |copy: &Path| {
                fs::remove_file(copy).unwrap();
                fs::write(copy, "half").unwrap();
                fs::set_permissions(copy, Permissions::from_mode(MODE)).unwrap();
            },
        ] {
            spoil(&copy);
            assert_eq!(copy_in(&copies, &installed).unwrap(), copy);
            let meta = fs::symlink_metadata(&copy).unwrap();
            assert!(meta.is_file() && meta.mode() & 0o7777 == MODE && meta.len() == first.len());
        }
        assert_eq!(fs::read_dir(&copies).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn what_is_no_library_or_in_the_way_is_not_copied() {
        let (folder, installed, copies) = place();
        fs::write(&copies, "in the way").unwrap();
        assert!(copy_in(&copies, &installed).is_err());
        fs::write(&installed, vec![0xcc; 10_000]).unwrap();
        assert!(copy_in(&folder.path().join("other"), &installed).is_err());
    }

    #[test]
    fn old_copies_go_unless_they_are_mapped() {
        let (_folder, installed, copies) = place();
        private_directory(&copies).unwrap();
        let old = |name: &str| {
            let file = File::create(copies.join(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * UNUSED).unwrap();
            name.to_owned()
        };
        let gone = [old("1-2-libdiscnice.so"), old(&format!("{UNFINISHED}x"))];
        let kept = old("what is not ours");
        fs::write(copies.join("3-4-libdiscnice.so"), "used lately").unwrap();
        copy_in(&copies, &installed).unwrap();
        assert!(gone.iter().all(|name| !copies.join(name).exists()));
        assert!(copies.join(kept).exists() && copies.join("3-4-libdiscnice.so").exists());
        let own = std::env::current_exe().unwrap();
        assert!(is_mapped(own.file_name().unwrap().as_bytes()));
        assert!(!is_mapped(b"5-6-libdiscnice.so"));
    }

    #[test]
    fn paths_that_the_dynamic_linker_would_cut_are_known() {
        assert!(is_speakable(Path::new("/run/user/1000/discnice/library/1-libdiscnice.so")));
        for path in ["/a b/c", "/a:b", "/$LIB/c", "/a\tb"] {
            assert!(!is_speakable(Path::new(path)), "{path}");
        }
    }
}
