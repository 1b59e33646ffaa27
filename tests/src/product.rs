//! The product under test.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// An ordinary user without any file of its own: Debian's `nobody`.
pub const NOBODY: &str = "65534";

/// What the names of those folders begin with that test programs have at run time.
const RUNTIME: &str = "discnice-tests-";
/// Where it finds programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The `discnice` program: `$DISCNICE_BIN`, or the release build of this workspace.
///
/// # Panics
/// It has not been built; the message says how.
#[must_use]
pub fn program() -> PathBuf {
    let built = || {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| workspace.join("target"), |folder| workspace.join(folder));
        target.join("release/discnice")
    };
    let path = std::env::var_os("DISCNICE_BIN").map_or_else(built, PathBuf::from);
    let library = path.with_file_name("libdiscnice.so");
    assert!(
        path.is_file() && library.is_file(),
        "{} and {} must be there: run `cargo build --release` first, or set DISCNICE_BIN",
        path.display(),
        library.display()
    );
    path.canonicalize().expect("the product's path")
}

/// Whether the tests run as the superuser.
#[must_use]
pub fn is_root() -> bool {
    // The owner of a process's folder in /proc is its effective user.
    std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// A command as an ordinary user.
#[must_use]
pub fn as_user(name: impl AsRef<OsStr>) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(name);
        // The superuser's own may name programs that others cannot read.
        command.env("PATH", PATH);
        command
    } else {
        Command::new(name)
    };
    command.env("XDG_RUNTIME_DIR", runtime());
    // What tells the tests something is none of the guests' concern.
    for name in discnice_requirements::VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Where the product keeps what lives as long as a session: a folder of this test program's, for other test programs
/// of the same user have limits and a policyd of their own, which must not meet.
fn runtime() -> &'static Path {
    static FOLDER: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (folder, _) = FOLDER.get_or_init(|| {
        remove_what_others_left();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let mut folder = tempfile::Builder::new();
        let folder = folder.prefix(RUNTIME).permissions(private).tempdir_in("/tmp");
        let folder = folder.expect("/tmp is writable").keep();
        let lock = File::open(&folder).expect("the folder is ours");
        lock.lock().expect("no other test program's");
        if is_root() {
            let owner = NOBODY.parse().ok();
            std::os::unix::fs::chown(&folder, owner, owner).expect("the folder is ours");
        }
        (folder, lock)
    });
    folder
}

/// A test program does not notice its end, so the next one removes what it left. A living one has its folder locked, also one in
/// another PID namespace.
fn remove_what_others_left() {
    for entry in std::fs::read_dir("/tmp").into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_str().is_some_and(|name| name.starts_with(RUNTIME));
        // It may be another user's, or not be locked yet.
        let is_old = || entry.metadata()?.modified()?.elapsed().map_err(io::Error::other);
        if is_one
            && is_old().is_ok_and(|age| age > Duration::from_secs(60))
            && File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok())
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// `discnice` with these arguments, as an ordinary user.
#[must_use]
pub fn discnice<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = as_user(program());
    command.args(arguments);
    command
}

/// Copies a program that is to be executed. cp(1) does it: a file that this process had open for writing could not be
/// executed while a child that another thread has just forked still has it (`ETXTBSY`).
///
/// # Panics
/// It cannot be copied.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let paths = [from.as_ref(), to.as_ref()];
    let copied = Command::new("cp").arg("--").args(paths).status();
    assert!(copied.is_ok_and(|status| status.success()), "no copy: {paths:?}");
}

/// A folder on a disk that is the ordinary user's alone; removed when dropped.
///
/// # Panics
/// As [`folder`].
#[must_use]
pub fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/var/tmp").expect("/var/tmp is writable");
    if is_root() {
        let owner = NOBODY.parse().ok();
        std::os::unix::fs::chown(folder.path(), owner, owner).expect("the folder is ours");
    }
    folder
}

/// A folder on a disk, in which an ordinary user may write; removed when dropped.
///
/// # Panics
/// `/var/tmp`, which file-hierarchy(7) wants on a disk, is not writable.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir_in("/var/tmp").expect("/var/tmp is writable");
    // Sticky as /tmp is: no user can replace what another makes in it.
    let open = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(folder.path(), open).expect("the folder is ours");
    folder
}
