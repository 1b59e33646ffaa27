//! What the library shows to the programs that it enters.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// The symbols that the library is meant to export, one a line, sorted.
const LIST: &str = "crates/preload/symbols.txt";

/// Compares the library's exported functions with the list, and looks for code that panics.
pub fn check(library: &Path) -> anyhow::Result<()> {
    let exported: BTreeSet<String> = names(library, &["-D", "--defined-only"])?.collect();
    let text = fs::read_to_string(LIST).context(LIST)?;
    let listed: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let more: Vec<_> = exported.difference(&listed).collect();
    let fewer: Vec<_> = listed.difference(&exported).collect();
    if !more.is_empty() || !fewer.is_empty() {
        bail!("{LIST}: exported but not listed: {more:?}; listed but not exported: {fewer:?}");
    }
    let panicking: Vec<_> = names(library, &[])?.filter(|name| name.contains("panic")).collect();
    if !panicking.is_empty() {
        bail!("the library can panic: {panicking:?}");
    }
    println!("symbols: {} exported as listed, none that panics", exported.len());
    Ok(())
}

fn names(library: &Path, options: &[&str]) -> anyhow::Result<impl Iterator<Item = String>> {
    let output = Command::new("nm").args(options).arg(library).output().context("nm")?;
    if !output.status.success() {
        bail!("nm {}: {}", library.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout)?;
    let names: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect();
    Ok(names.into_iter())
}
