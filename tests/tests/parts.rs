//! `--disk 10%`: a part of what `discnice calibrate` measured of the disk below the working directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use discnice_tests::class::Class;
use discnice_tests::process::run;
use discnice_tests::product;
use tempfile::TempDir;

/// Bandwidth of the disk in the test's profile.
const MEASURED: u64 = 200_000_000;

/// A home on a disk that counts as measured.
fn calibrated() -> TempDir {
    let home = product::folder();
    let (major, minor) = device(home.path());
    let profile = format!(
        "version = 1\nkernel = \"6\"\nwhile_busy = false\n\n[[figure]]\nname = \"sequential_read\"\n\
         value = {MEASURED}.0\nunit = \"B/s\"\nspread = 1.0\nsamples = 9\ndevice = \"{major}:{minor}\"\n\
         file_system = \"ext4\"\ndate = \"2026-01-01T00:00:00Z\"\n"
    );
    write(home.path(), ".cache/discnice", "profile.toml", &profile);
    home
}

/// The numbers of the device that a file is on.
fn device(path: &Path) -> (u32, u32) {
    let device = fs::metadata(path).expect("it is there").dev();
    (libc::major(device), libc::minor(device))
}

/// Writes a file of the user that commands run as.
fn write(home: &Path, folder: &str, name: &str, text: &str) {
    let folder = home.join(folder);
    fs::create_dir_all(&folder).expect("a directory");
    fs::write(folder.join(name), text).expect("a file");
    if product::is_root() {
        let own = product::NOBODY.parse().ok();
        let all = folder.ancestors().take_while(|one| *one != home);
        let file = folder.join(name);
        all.chain([file.as_path()]).for_each(|path| {
            std::os::unix::fs::chown(path, own, own).expect("the superuser may");
        });
    }
}

/// The command at home.
fn at<'a>(home: &TempDir, command: &'a mut Command) -> &'a mut Command {
    command.current_dir(home.path()).env("HOME", home.path()).env_remove("XDG_CACHE_HOME");
    command.env_remove("XDG_CONFIG_HOME")
}

#[test]
fn a_part_is_one_of_the_disk_here() {
    let home = calibrated();
    let class = Class::new("10%");
    let ran = run(at(&home, &mut class.command(["echo", "ran"]))).succeeded();
    assert_eq!(ran.text(), "ran\n");
    assert_eq!(class.show()["limit_total"], MEASURED / 10);
    let read = ["class", "set", class.name(), "--disk-read", "2.5%", "--disk-write", "1M"];
    run(at(&home, &mut product::discnice(read))).succeeded();
    assert_eq!(class.show()["limit_read"], MEASURED / 40);
    let more = ["class", "set", class.name(), "--disk-read", "11%"];
    let refused = run(at(&home, &mut product::discnice(more)));
    assert!(refused.complaint().contains("lower --disk-read or raise --disk"), "{refused:?}");
    assert_eq!(class.show()["limit_read"], MEASURED / 40, "nothing changed");
}

#[test]
fn elsewhere_it_is_refused() {
    let home = calibrated();
    let class = Class::new("10%");
    let mut command = class.command(["touch", "started"]);
    let elsewhere = at(&home, &mut command).current_dir("/proc");
    let refused = run(elsewhere);
    assert_eq!(refused.status, Some(125), "{refused:?}");
    assert!(refused.complaint().contains("run `discnice calibrate --dir .` first"), "{refused:?}");
}

#[test]
fn a_configuration_may_name_parts() {
    let home = calibrated();
    let class = Class::new("unlimited");
    let text = format!("[class.{:?}]\ndisk = \"5%\"\n", class.name());
    write(home.path(), ".config/discnice", "config.toml", &text);
    let enter = ["run", "--class", class.name(), "true"];
    run(at(&home, &mut product::discnice(enter))).succeeded();
    assert_eq!(class.show()["limit_total"], MEASURED / 20);
    // Of no concern to others where nothing was measured.
    fs::remove_dir_all(home.path().join(".cache")).expect("our own");
    let mut other = product::discnice(["run", "true"]);
    assert_eq!(run(at(&home, &mut other)).succeeded().complaint(), "");
}
