//! The files of the workspace.

use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::Context;

/// The root of the workspace for which Cargo runs this, which need not be the one that this was built in.
pub fn workspace() -> anyhow::Result<PathBuf> {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").context("not run by `cargo xtask`")?;
    Ok(Path::new(&xtask).parent().context("a workspace")?.to_owned())
}

/// Calls `each` with a file, or with every file below a folder, of a name that ends so, in the order of their paths, but with none that Cargo
/// built.
pub fn walk(
    place: &Path,
    ends: &[&str],
    each: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if !place.is_dir() {
        let wanted = place.extension().is_some_and(|end| ends.iter().any(|kind| end == *kind));
        return if wanted { each(place) } else { Ok(()) };
    }
    if place.file_name().is_some_and(|name| name == "target") {
        return Ok(());
    }
    let entries = fs::read_dir(place).with_context(|| place.display().to_string())?;
    let mut paths: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    paths.iter().try_for_each(|path| walk(path, ends, each))
}
