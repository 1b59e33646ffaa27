//! `disk up`: from nothing to a mounted file system, or back to nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use clap::ValueEnum;
use discnice_units::Bytes;

use super::control::{self, Ask};
use super::profile::ProfileName;
use super::state::{Owner, Places, State};
use super::{device, down, mounts, server};
use crate::proc::{ProcessId, meminfo};
use crate::{stop, tool};

/// What kind of disk is wanted, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which numbers.
    pub profile: ProfileName,
    /// Size of the image.
    pub size: Bytes,
    /// Mount point; made if it does not exist.
    pub mount: PathBuf,
    /// Owner of the root directory.
    pub owner: Owner,
    /// I/O scheduler.
    pub scheduler: String,
    /// Read-ahead of the kernel, in KiB.
    pub read_ahead_kb: u64,
}

impl Wanted {
    /// As [`State::in_words`] of the disk that will be up.
    #[must_use]
    pub fn in_words(&self) -> String {
        super::state::in_words(self.profile, self.size.get(), &self.scheduler, self.read_ahead_kb)
    }
}

/// Below this ext4 has no room for a journal.
const SMALLEST: Bytes = Bytes::new(16 << 20);

/// Fails for all users but root.
///
/// # Errors
/// Not root.
pub fn need_root() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("the emulated disk needs root; run it with sudo");
    }
    Ok(())
}

/// Whether this machine and this user can have an emulated disk.
///
/// # Errors
/// The first thing that is lacking.
pub fn requirements(size: Bytes) -> anyhow::Result<()> {
    need_root()?;
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            bail!("{device} is missing; load the kernel module (modprobe fuse loop)");
        }
    }
    for program in ["losetup", "mkfs.ext4"] {
        if tool::find(program).is_none() {
            bail!("{program} is not installed");
        }
    }
    if size < SMALLEST {
        bail!("a disk of {size} is too small; give --size {SMALLEST} or more");
    }
    let free = Bytes::new(meminfo("MemAvailable").context("cannot read /proc/meminfo")?);
    // The disk lives in memory and may be filled; a fifth is left to the programs under test.
    if size.get() > free.get() / 5 * 4 {
        bail!(
            "a disk of {size} does not fit the available memory of {free}; give a smaller --size"
        );
    }
    Ok(())
}

/// Makes the disk, mounts it, and returns what is up; cleans up after itself if anything fails.
///
/// # Errors
/// A requirement is lacking, a disk is up already, or a step fails.
pub fn up(places: &Places, wanted: &Wanted) -> anyhow::Result<State> {
    requirements(wanted.size)?;
    if let Some(state) = places.load().filter(|state| state.server.is_alive()) {
        bail!("a disk is up at {}; take it down first", state.mount.display());
    }
    down::down(places, down::Busy::Detach).context("cannot clean up an earlier wreck")?;
    places.create()?;
    match build(places, wanted) {
        Ok(state) => Ok(state),
        Err(error) => match down::down(places, down::Busy::Detach) {
            Ok(_) => Err(error),
            Err(second) => Err(error.context(format!("and cleaning up failed: {second:#}"))),
        },
    }
}

fn build(places: &Places, wanted: &Wanted) -> anyhow::Result<State> {
    let made_mount_point = prepare_mount_point(&wanted.mount)?;
    let child = start_server(places, wanted)?;
    let mut state = State {
        server: ProcessId::of(child.id()).context("the disk's process ended at once")?,
        loop_device: None,
        mount: wanted.mount.clone(),
        made_mount_point,
        owner: wanted.owner,
        profile: wanted.profile,
        size: wanted.size.get(),
        scheduler: wanted.scheduler.clone(),
        read_ahead_kb: wanted.read_ahead_kb,
    };
    places.store(&state)?;
    wait_until_ready(places, child)?;
    stop::check()?;
    let device = device::attach(&places.image())?;
    state.loop_device = Some(device.clone());
    places.store(&state)?;
    device::tune(&device, wanted.profile.rotational(), &wanted.scheduler, wanted.read_ahead_kb)?;
    make_file_system(&device)?;
    stop::check()?;
    mounts::mount_ext4(&device, &wanted.mount)?;
    chown(&wanted.mount, Some(wanted.owner.uid), Some(wanted.owner.gid))
        .with_context(|| format!("cannot give away {}", wanted.mount.display()))?;
    mounts::sync(&wanted.mount)?;
    control::ask(&places.socket(), Ask::Pace)?;
    stop::check()?;
    Ok(state)
}

/// Returns whether the directory was made. A used one is refused: its files would be hidden.
fn prepare_mount_point(directory: &Path) -> anyhow::Result<bool> {
    if !directory.is_absolute() {
        bail!("the mount point {} must be an absolute path", directory.display());
    }
    if mounts::all()?.iter().any(|mounted| mounted.target == directory) {
        bail!("something is mounted on {}; give another --mount", directory.display());
    }
    match fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            Some(_) => bail!("{} is not empty; give another --mount", directory.display()),
            None => Ok(false),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            Ok(true)
        }
        Err(error) => Err(error).with_context(|| format!("cannot use {}", directory.display())),
    }
}

/// Starts this program again as the serving process, in a process group of its own.
fn start_server(places: &Places, wanted: &Wanted) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let log = fs::File::create(places.log()).context("cannot make the disk's log")?;
    let profile = wanted.profile.to_possible_value().context("a profile without a name")?;
    Command::new(program)
        .args(["disk", "serve", "--profile", profile.get_name()])
        .args(["--size", &wanted.size.get().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .context("cannot start the disk's process")
}

fn wait_until_ready(places: &Places, mut child: Child) -> anyhow::Result<()> {
    let output = child.stdout.take().context("the disk's process has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).context("the disk's process says nothing")?;
    if line.trim_end() == server::READY {
        return Ok(());
    }
    let log = fs::read_to_string(places.log()).unwrap_or_default();
    let reason =
        log.lines().last().unwrap_or("it says nothing").trim_start_matches(crate::message::PREFIX);
    bail!("the disk's process failed: {reason}")
}

fn make_file_system(device: &Path) -> anyhow::Result<()> {
    // Lazy initialisation: with noinit_itable at mounting the unused tables are never written.
    let options = "lazy_itable_init=1,lazy_journal_init=1";
    tool::run(
        "mkfs.ext4",
        ["-q", "-F", "-m", "0", "-L", "discnice-eval", "-E", options]
            .map(AsRef::as_ref)
            .into_iter()
            .chain([device.as_os_str()]),
    )
    .map(drop)
}
