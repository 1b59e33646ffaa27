//! Which crate may use which.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// From the bottom up: a crate uses only crates above it in this list.
const ORDER: &[&str] = &[
    "discnice-units",
    "discnice-sys",
    "discnice-policy",
    "discnice-estimator",
    "discnice-budget",
    "discnice-regulator",
    "discnice-loading",
    "discnice-preload",
    "discnice-notify",
    "discnice-escape",
    "discnice-paths",
    "discnice-registry",
    "discnice-pagecache",
    "discnice-graybox",
    "discnice-profile",
    "discnice-manners",
    "discnice-testpoint",
    "discnice-capi",
    "discnice-benice",
    "discnice-plot",
    "discnice-external",
    "discnice-fleet",
    "discnice-policyd",
    "discnice-metrics",
    "discnice-cli",
    "discnice-eval",
    "xtask",
];

/// Crates up to this one are linked into other people's programs, and use besides each other only
/// what is allowed there.
const LAST_IN_PROGRAMS: &str = "discnice-preload";
const ALLOWED_IN_PROGRAMS: &[&str] = &["libc"];

/// Checks every crate of the workspace.
pub fn check() -> anyhow::Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1"])
        .output()
        .context("cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        for used in uses(package) {
            if let Some(why) = offence(name, &used) {
                wrong.push(format!("{name} uses {used}: {why}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("layers:\n  {}", wrong.join("\n  "));
    }
    println!("layers: {} crates in order", packages.len());
    Ok(())
}

/// Ordinary dependencies, not those of tests or of other configurations (loom).
fn uses(package: &Value) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter(|dependency| dependency["kind"].is_null() && dependency["target"].is_null())
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
        .collect()
}

fn offence(name: &str, used: &str) -> Option<&'static str> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    if let Some(below) = place(used) {
        let own = place(name)?;
        return (below >= own).then_some("it stands below it");
    }
    let in_programs = place(name)? <= place(LAST_IN_PROGRAMS)?;
    let outside = in_programs && !ALLOWED_IN_PROGRAMS.contains(&used);
    outside.then_some("a crate that is linked into programs links nothing else")
}
