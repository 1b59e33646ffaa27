//! The files of the workspace.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context;

/// The root of the workspace.
pub fn workspace() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace")
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
