//! Trees of small files, and repositories of them.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::lab::Lab;
use crate::random::Random;
use crate::tool;

/// Files in each directory of a tree.
pub const FILES_EACH: u32 = 100;
/// Small files have up to this size.
const SMALL_BYTES: u64 = 40_000;

/// A tree of small files that cannot be compressed.
pub fn forest(folder: &Path, directories: u32) -> anyhow::Result<()> {
    let mut random = Random::new(u64::from(directories));
    let mut content = vec![0; SMALL_BYTES as usize];
    for directory in 0..directories {
        let directory = folder.join(directory.to_string());
        fs::create_dir_all(&directory).context("cannot make a tree")?;
        for file in 0..FILES_EACH {
            let content = &mut content[..random.below(SMALL_BYTES) as usize];
            random.fill(content);
            fs::write(directory.join(file.to_string()), content).context("cannot fill a tree")?;
        }
    }
    Ok(())
}

/// Runs git in a repository.
pub fn git(repository: &Path, words: &[&str]) -> anyhow::Result<()> {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"];
    let place = ["-C".as_ref(), repository.as_os_str()];
    let words = identity.iter().chain(words).map(AsRef::as_ref);
    tool::run("git", place.into_iter().chain(words)).map(drop)
}

/// Gives all that is below a folder to the unprivileged user.
pub fn give_all(lab: &Lab, folder: &Path) -> anyhow::Result<()> {
    let owner = format!("{}:{}", lab.disk.owner.uid, lab.disk.owner.gid);
    tool::run("chown", ["-R".as_ref(), owner.as_ref(), folder.as_os_str()]).map(drop)
}
