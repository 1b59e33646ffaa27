//! Running the system's own tools (losetup, mkfs.ext4, …) for their effect.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};

/// Runs `program` to its end; returns its standard output without the last line break.
///
/// The tool gets its own process group, so that Ctrl-C cannot leave its work half done.
///
/// # Errors
/// Not installed, or it fails: its own last line says why.
pub fn run(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> anyhow::Result<String> {
    use std::os::unix::process::CommandExt;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .map_err(|error| match error.kind() {
            // A folder of the search path that is closed to us looks like a closed program.
            ErrorKind::NotFound | ErrorKind::PermissionDenied if find(program).is_none() => {
                anyhow!("{program} is not installed")
            }
            _ => anyhow!(error).context(format!("cannot run {program}")),
        })?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        bail!("{program} failed ({}): {}", output.status, last.unwrap_or("it says nothing").trim());
    }
    String::from_utf8(output.stdout)
        .map(|text| text.trim_end().to_owned())
        .with_context(|| format!("{program} printed no text"))
}

/// The file that `program` names on the search path, with the folders of the superuser.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
