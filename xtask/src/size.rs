//! How large the program is that users copy.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Bytes that the program stays below when it is stripped, as packages have it.
const MOST: u64 = 6_000_000;

/// Strips a copy of the program, by `$STRIP` if it is for another architecture, and compares its size with the largest that
/// is allowed.
pub fn check(program: &Path) -> anyhow::Result<()> {
    let copy = program.with_extension("stripped");
    let strip = std::env::var_os("STRIP").unwrap_or_else(|| "strip".into());
    let output = Command::new(&strip).arg("-o").arg(&copy).arg(program).output();
    let output = output.with_context(|| strip.display().to_string())?;
    if !output.status.success() {
        bail!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let size = fs::metadata(&copy).with_context(|| copy.display().to_string())?.len();
    fs::remove_file(&copy).with_context(|| copy.display().to_string())?;
    if size >= MOST {
        bail!(
            "{}: {size} bytes stripped, {MOST} is the most; nm --size-sort shows what grew",
            program.display()
        );
    }
    println!("size: {size} bytes stripped, of at most {MOST}");
    Ok(())
}
