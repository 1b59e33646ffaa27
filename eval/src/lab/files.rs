//! Files for the experiments, made as the user's.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::Lab;
use crate::random::Random;
use crate::removal::unless_missing;
use crate::stop;

/// Makes a file of `bytes` bytes that cannot be compressed; the same for the same name.
///
/// # Errors
/// The disk is full, or a stop was requested.
pub fn make(lab: &Lab, file: &Path, bytes: u64) -> anyhow::Result<()> {
    let seed = file.to_string_lossy().bytes().map(u64::from).sum();
    let context = || format!("cannot make {}", file.display());
    let mut out = File::create(file).with_context(context)?;
    let mut random = Random::new(seed);
    let mut chunk = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        stop::check()?;
        let length = left.min(chunk.len() as u64) as usize;
        random.fill(&mut chunk[..length]);
        out.write_all(&chunk[..length]).with_context(context)?;
        left -= length as u64;
    }
    give(lab, file)
}

/// Makes the user the owner.
///
/// # Errors
/// As chown(2).
pub fn give(lab: &Lab, file: &Path) -> anyhow::Result<()> {
    chown(file, Some(lab.disk.owner.uid), Some(lab.disk.owner.gid))
        .with_context(|| format!("cannot give away {}", file.display()))
}

/// Makes `folder` anew, empty, the user's.
///
/// # Errors
/// What is in it cannot be removed.
pub fn empty_folder(lab: &Lab, folder: &Path) -> anyhow::Result<()> {
    unless_missing(fs::remove_dir_all(folder), folder)?;
    fs::create_dir(folder).context("cannot make a folder")?;
    give(lab, folder)
}

/// Real files of this system, in a fixed order, until they hold `bytes` bytes together.
///
/// # Errors
/// The system has too few readable files of at most 1 MB below /usr/include and /usr/share.
pub fn real_files(bytes: u64) -> anyhow::Result<Vec<PathBuf>> {
    const LARGEST: u64 = 1 << 20;
    let mut pending = vec![PathBuf::from("/usr/share"), PathBuf::from("/usr/include")];
    let (mut files, mut total) = (Vec::new(), 0);
    while let Some(folder) = pending.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        // The last one pushed is visited first.
        for path in paths.into_iter().rev() {
            let Ok(facts) = path.symlink_metadata() else { continue };
            if facts.is_dir() {
                pending.push(path);
            } else if facts.is_file() && facts.len() <= LARGEST && File::open(&path).is_ok() {
                total += facts.len();
                files.push(path);
                if total >= bytes {
                    return Ok(files);
                }
            }
        }
    }
    bail!("this system has only {} of files to pack", discnice_units::Bytes::new(total))
}

/// Packs real files of this system into a tar archive of about `bytes` bytes.
///
/// # Errors
/// Too few files, tar fails, or the disk is full.
pub fn make_archive(lab: &Lab, archive: &Path, bytes: u64) -> anyhow::Result<()> {
    let list = lab.memory().join("archive-list");
    let mut out = BufWriter::new(File::create(&list).context("cannot list the files to pack")?);
    for file in real_files(bytes)? {
        use std::os::unix::ffi::OsStrExt;
        out.write_all(file.as_os_str().as_bytes())?;
        out.write_all(b"\0")?;
    }
    out.flush()?;
    drop(out);
    let options = ["--create", "--absolute-names", "--null", "--no-recursion", "--file"];
    crate::tool::run(
        "tar",
        options.map(AsRef::as_ref).into_iter().chain([
            archive.as_os_str(),
            "--files-from".as_ref(),
            list.as_os_str(),
        ]),
    )?;
    give(lab, archive)
}
