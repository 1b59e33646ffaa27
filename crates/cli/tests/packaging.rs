//! What is installed beside the program: what install.sh leaves, in folders with names that shells and systemd read in their
//! own ways, and what login shells read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_requirements::skip;

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
const UNITS: &str = "files/share/systemd/user";

/// A package of a program that does nothing, and of one more file.
fn package(folder: &Path, more: &str) -> PathBuf {
    let package = folder.join("package");
    let _ = fs::remove_dir_all(&package);
    for part in ["files/bin", "files/lib/discnice", UNITS] {
        fs::create_dir_all(package.join(part)).unwrap();
    }
    fs::copy("/bin/true", package.join("files/bin/discnice")).unwrap();
    fs::write(package.join("files/lib/discnice/libdiscnice.so"), "").unwrap();
    fs::create_dir_all(package.join(more).parent().unwrap()).unwrap();
    fs::write(package.join(more), "").unwrap();
    for unit in ["discnice-policyd", "discnice-refresh@"] {
        let from = format!("{PACKAGING}/systemd/{unit}.service.in");
        fs::copy(from, package.join(UNITS).join(format!("{unit}.service"))).unwrap();
    }
    fs::copy(format!("{PACKAGING}/install.sh"), package.join("install.sh")).unwrap();
    package
}

fn run(command: &mut Command) {
    let out = command.output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

fn install(package: &Path, prefix: &Path) {
    run(Command::new("sh").arg(package.join("install.sh")).arg(prefix));
}

#[test]
fn an_upgraded_package_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("my home");
    install(&package(folder.path(), "files/share/old/page"), &prefix);
    install(&package(folder.path(), "files/share/new/page"), &prefix);
    assert!(!prefix.join("share/old").exists(), "of the version before");
    assert!(prefix.join("share/new/page").exists() && prefix.join("bin/discnice").exists());
    run(Command::new("sh").arg(prefix.join("lib/discnice/uninstall.sh")));
    assert!(!prefix.exists());
}

#[test]
fn units_are_accepted_wherever_the_program_is() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("50% of my home & co | more");
    install(&package(folder.path(), "files/share/page"), &prefix);
    let units = prefix.join("share/systemd/user");
    let (template, instance) = ("discnice-refresh@.service", "discnice-refresh@tmp.service");
    fs::copy(units.join(template), units.join(instance)).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user", "--man=no", "--recursive-errors=no"]);
    verify.arg(units.join("discnice-policyd.service")).arg(units.join(instance));
    let Ok(out) = verify.env("XDG_RUNTIME_DIR", folder.path()).output() else {
        skip!("systemd-analyze is missing");
    };
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn a_prompt_sees_the_status_of_the_last_command() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings");
    let lines = format!(
        "PS1=\nPROMPT_COMMAND='echo status=$?'\nDISCNICE_SESSION=session\n. {PACKAGING}/profile.d/discnice.sh\n"
    );
    fs::write(&settings, lines).unwrap();
    fs::write(folder.path().join("commands"), "(exit 7)\nexit\n").unwrap();
    let program = folder.path().join("discnice");
    fs::write(&program, "#!/bin/sh\necho 0.0\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut shell = Command::new("bash");
    shell.arg("--rcfile").arg(&settings).arg("-i");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    shell.env("PATH", path).stdin(fs::File::open(folder.path().join("commands")).unwrap());
    let out = shell.output().unwrap();
    let shown = String::from_utf8_lossy(&out.stdout);
    assert!(shown.contains("status=7"), "{out:?}");
}
