//! Variables that say nonsense, and file systems that are full or read-only: one clear line or nothing to say, and the command
//! runs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::failing::{Scene, give, make_private};
use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};

/// Our own error.
const OURS: i32 = 125;
const COMMAND: [&str; 4] = ["--", "sh", "-c", "echo out; exit 7"];
const WAYS: [&[&str]; 3] =
    [&["run", "--class", "failing-test", "--disk", "50M"], &["run"], &["run", "--polite"]];

/// The command ran, and at most one line says what does not hold; or it was not started and one line says why, which names this.
fn judge(outcome: Option<Outcome>, may_name: &str) -> Result<(), String> {
    let outcome = outcome.ok_or("it hangs")?;
    let complaint = outcome.complaint();
    let ours = complaint.lines().all(|line| line.starts_with("discnice: "));
    let ran = outcome.status == Some(7) && outcome.text() == "out\n";
    let refused = outcome.status == Some(OURS)
        && outcome.output.is_empty()
        && !may_name.is_empty()
        && complaint.contains(may_name);
    let right = ours && complaint.lines().count() <= 1 && (ran || refused);
    if right { Ok(()) } else { Err(format!("{outcome:?}")) }
}

/// Paths at which nothing of ours can be, or nothing at all.
fn paths(scene: &Scene) -> Vec<Vec<u8>> {
    let (file, fifo) = (scene.path("file"), scene.path("fifo"));
    fs::write(&file, "not to be touched\n").expect("our folder");
    run(Command::new("mkfifo").arg(&fifo)).succeeded();
    give(&file);
    give(&fifo);
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let mut all = vec![bytes(&file), bytes(&fifo)];
    all.extend(
        ["", ".", "relative/path", "/", "/nowhere/at/all", "/dev/null", "/proc/self"]
            .map(Vec::from),
    );
    all.extend([
        vec![b'x'; 5000],
        [b"/".to_vec(), vec![b'y'; 5000]].concat(),
        // It is made where a user may.
        bytes(&scene.path("").join(OsStr::from_bytes(b"\xff\xfe"))),
    ]);
    all
}

#[test]
fn variables_that_name_no_directory_of_ours() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(why) => skip!("{why}"),
    };
    let mut wrong = Vec::new();
    for value in paths(&scene) {
        for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"] {
            for way in WAYS {
                let set = [(name, OsStr::from_bytes(&value))];
                let outcome = scene.command_with(&[way, &COMMAND].concat(), &set);
                if let Err(why) = judge(outcome, "config.toml") {
                    let value = String::from_utf8_lossy(&value);
                    wrong.push(format!("{name}={value:.40} {way:?}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let kept = fs::read_to_string(scene.path("file")).expect("it is still there");
    assert_eq!(kept, "not to be touched\n");
}

/// Accounts of services have such a home.
#[test]
fn a_home_that_can_hold_nothing_has_no_settings() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(why) => skip!("{why}"),
    };
    for name in ["XDG_CONFIG_HOME", "HOME"] {
        for way in WAYS {
            let outcome =
                scene.command_with(&[way, &COMMAND].concat(), &[(name, "/dev/null".as_ref())]);
            judge(outcome, "").unwrap_or_else(|why| panic!("{name} {way:?}: {why}"));
        }
    }
}

#[test]
fn tokens_that_lead_nowhere() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(why) => skip!("{why}"),
    };
    let zeroes = "0".repeat(5000);
    let values: [&[u8]; 11] = [
        b"",
        b"1",
        b"garbage",
        b"1 2 3 4 5 6 7 8 9",
        b"ffffffffffffffff",
        b"-1:-1:-1",
        b":::::::",
        b"1:2:3:/nowhere",
        b"99999999999999999999999999999999",
        zeroes.as_bytes(),
        b"\xff\xfe",
    ];
    for value in values {
        // In the environment of `run`, and of a program that has our library.
        for script in ["echo out; exit 7", "export DISCNICE=\"$BAD\"; sh -c 'echo out; exit 7'"] {
            let words = ["run", "--disk", "50M", "--", "sh", "-c", script];
            let value = OsStr::from_bytes(value);
            let outcome = scene.command_with(&words, &[("DISCNICE", value), ("BAD", value)]);
            judge(outcome, "").unwrap_or_else(|why| panic!("{value:?} {script}: {why}"));
        }
    }
}

/// A small file system at a path, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path) -> Option<Self> {
        let owner = format!("size=64k,mode=700,uid={0},gid={0}", product::NOBODY);
        let mounted =
            run(Command::new("mount").args(["-t", "tmpfs", "-o", &owner, "none"]).arg(path));
        (mounted.status == Some(0)).then(|| Self(path.to_owned()))
    }

    fn remount(&self, option: &str) {
        let option = format!("remount,{option}");
        run(Command::new("mount").args(["-o", &option]).arg(&self.0)).succeeded();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

#[test]
fn a_full_and_a_read_only_file_system() {
    let scene = match Scene::new() {
        Ok(scene) => scene,
        Err(why) => skip!("{why}"),
    };
    let places = [scene.runtime().join("discnice"), scene.runtime().join("home")];
    let mut wrong = Vec::new();
    for place in places {
        for used in [false, true] {
            scene.renew();
            make_private(&place);
            let Some(disk) = Disk::mount(&place) else { skip!("needs the right to mount") };
            if used {
                let _ = scene.command(&[WAYS[0], &COMMAND].concat());
            }
            let _ = fs::write(place.join("filled"), vec![1; 1 << 20]);
            for state in ["rw", "ro"] {
                // The daemon holds its lock open for writing.
                scene.kill_all();
                disk.remount(state);
                for way in WAYS {
                    if let Err(why) = judge(scene.command(&[way, &COMMAND].concat()), "") {
                        wrong.push(format!(
                            "{} {state} used {used} {way:?}: {why}",
                            place.display()
                        ));
                    }
                }
            }
            scene.kill_all();
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn doctor_gives_reasons_without_the_kernels_numbers() {
    let mut doctor = product::discnice(["doctor"]);
    let said = run(doctor.current_dir("/").env("TMPDIR", "/")).text();
    assert!(said.contains("cannot write here: "), "{said}");
    assert!(!said.contains("os error"), "{said}");
}
