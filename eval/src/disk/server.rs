//! The process that serves the disk, from its first line to the unmounting of its file system.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::Context;
use fuser::{Config, MountOption, Session};

use super::control;
use super::filesystem::ImageFilesystem;
use super::head::{self, Disk};
use super::profile::ProfileName;
use super::state::Places;

/// The line on standard output by which the process says that the image can be opened.
pub const READY: &str = "ready";

/// Serves a disk of `size` bytes until its file system is unmounted.
///
/// # Errors
/// No FUSE, no right to mount, no memory.
pub fn serve(places: &Places, profile: ProfileName, size: u64) -> anyhow::Result<()> {
    // The kernel may need this process to write pages back, so it must not wait for that itself.
    // Refused (no CAP_SYS_RESOURCE), it only costs safety under memory pressure.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    let disk = Arc::new(Disk::new(profile.profile(), size)?);
    let (sender, jobs) = mpsc::channel();
    let filesystem = ImageFilesystem::new(Arc::clone(&disk), sender);
    let session = mount(filesystem, &places.fuse())?;
    let listener = UnixListener::bind(places.socket()).context("cannot listen for commands")?;
    std::thread::Builder::new()
        .name("head".into())
        .spawn(move || head::answer_in_time(&jobs))
        .context("cannot start the head's thread")?;
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || control::answer_questions(&listener, &disk))
        .context("cannot start the control thread")?;
    println!("{READY}");
    std::io::stdout().flush().context("the process that started this disk is gone")?;
    session.run().context("the file system ended with an error")
}

fn mount(
    filesystem: ImageFilesystem,
    directory: &Path,
) -> anyhow::Result<Session<ImageFilesystem>> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("discnice-eval".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoExec,
    ];
    Session::new(filesystem, directory, &config)
        .with_context(|| format!("cannot mount a FUSE file system on {}", directory.display()))
}
