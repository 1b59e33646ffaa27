//! Which crate may use which, that files of one do not use each other in a circle, and that crates which meet call no two types
//! by one name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::circles::Circles;
use crate::files::{walk, workspace};
use crate::type_names::TypeNames;

/// From the bottom up: a crate uses only crates above it in this list.
const ORDER: &[&str] = &[
    "discnice-units",
    "discnice-sys",
    "discnice-estimator",
    "discnice-ledger",
    "discnice-regulator",
    "discnice-interpose",
    "discnice-preload",
    "discnice-supervisor",
    "discnice-escape",
    "discnice-paths",
    "discnice-registry",
    "discnice-graybox",
    "discnice-processes",
    "discnice-progress",
    "discnice-capi",
    "discnice-plot",
    "discnice-fleet",
    "discnice-watcher",
    "discnice-metrics",
    "discnice-cli",
    "discnice-pages",
    "discnice-eval",
    "xtask",
];

/// Crates up to this one are linked into other people's programs, and use besides each other only
/// what is allowed there.
const LAST_IN_PROGRAMS: &str = "discnice-preload";
const ALLOWED_IN_PROGRAMS: &[&str] = &["libc"];

/// Modules that could be crates of their own: folders, and the modules of the same crate that they use.
const MODULES: &[(&str, &[&str])] = &[
    ("crates/graybox/src/pagecache", &[]),
    ("crates/ledger/src/policy", &[]),
    ("crates/progress/src/model", &[]),
    ("crates/progress/src/testpoint", &["model"]),
];

/// Checks every crate of the workspace and its files, and the modules that are layers inside a crate.
pub fn check() -> anyhow::Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1"])
        .output()
        .context("cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut wrong = Vec::new();
    let (mut circles, mut types) = (Circles::default(), TypeNames::default());
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        for used in uses(package) {
            if let Some(why) = offence(name, &used) {
                wrong.push(format!("{name} uses {used}: {why}"));
            }
        }
        circles.read(&workspace()?, folder(package)?)?;
        types.read(name, folder(package)?)?;
    }
    wrong.extend(circles.offences());
    wrong.extend(types.offences());
    for (folder, allowed) in MODULES {
        inside(&workspace()?.join(folder), allowed, &mut wrong)?;
    }
    if !wrong.is_empty() {
        bail!("layers:\n  {}", wrong.join("\n  "));
    }
    println!("layers: {} crates and {} modules in order", packages.len(), MODULES.len());
    Ok(())
}

/// Finds what the files of a module use of their crate besides itself and what is allowed.
fn inside(folder: &Path, allowed: &[&str], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    anyhow::ensure!(folder.is_dir(), "{}: no module", folder.display());
    let own = folder.file_name().unwrap_or_default().to_string_lossy();
    walk(folder, &["rs"], &mut |path| {
        let text = fs::read_to_string(path)?;
        for part in text.split("crate::").skip(1) {
            let module: String =
                part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if module != own && !allowed.contains(&&*module) {
                wrong.push(format!("{} uses crate::{module}", path.display()));
            }
        }
        Ok(())
    })
}

fn folder(package: &Value) -> anyhow::Result<&Path> {
    let manifest = package["manifest_path"].as_str().context("no manifest")?;
    Path::new(manifest).parent().context("no folder")
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
