//! Containers with limits in their annotations, by real runc: of the superuser and of an ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user that no system has.
const USER: u32 = 61_041;
/// Programs of the image, and how each is built.
const PROGRAMS: [(&str, &[&str]); 3] =
    [("glibc", &["gcc"]), ("musl", &["musl-gcc"]), ("static", &["gcc", "-static"])];
/// What a program's dynamic linker and library are, with their place in the image.
const LIBRARIES: [(&str, &str); 3] = [
    ("/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
    ("/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
    ("/lib/x86_64-linux-musl/libc.so", "lib/ld-musl-x86_64.so.1"),
];
/// What a program writes in less time had no limit of 4 MiB/s: 8 MiB, of which a little passes at once.
const LEAST: u64 = 1600;

/// A bundle with an image, and runtimes that use it.
struct Bundle {
    folder: TempDir,
    user: u32,
}

impl Bundle {
    fn new(user: u32) -> Self {
        let folder = product::folder();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(product::program(), folder.path().join("discnice")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/discnice-runc");
        product::copy_program(script, folder.path().join("discnice-runc"));
        let image = folder.path().join("bundle/rootfs");
        for part in ["bin", "tmp", "proc", "dev", "sys", "lib64", "lib/x86_64-linux-gnu"] {
            fs::create_dir_all(image.join(part)).unwrap();
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/steady.c");
        for (name, build) in PROGRAMS {
            let mut compiler = Command::new(build[0]);
            compiler
                .args(&build[1..])
                .arg("-O")
                .arg(&source)
                .arg("-o")
                .arg(image.join("bin").join(name));
            let _ = run(&mut compiler).succeeded();
        }
        for (from, to) in LIBRARIES {
            product::copy_program(from, image.join(to));
        }
        for part in ["run", "state"] {
            fs::create_dir(folder.path().join(part)).unwrap();
            fs::set_permissions(folder.path().join(part), fs::Permissions::from_mode(0o700))
                .unwrap();
        }
        let bundle = Self { folder, user };
        let _ = run(Command::new("chown")
            .args(["-R", &format!("{user}:{user}"), "."])
            .current_dir(bundle.folder.path()))
        .succeeded();
        let mut spec = bundle.command(Path::new("runc"));
        let _ = run(spec.arg("spec").args((user != 0).then_some("--rootless"))).succeeded();
        bundle
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        let user = self.user.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(program);
        command
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .env("HOME", self.folder.path());
        command.current_dir(self.folder.path().join("bundle"));
        command
    }

    /// Says what the next container does.
    fn configure(&self, words: &[&str], annotations: &Value) {
        let path = self.folder.path().join("bundle/config.json");
        let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        config["process"]["terminal"] = json!(false);
        config["process"]["args"] = json!(words);
        config["root"]["readonly"] = json!(false);
        config["annotations"] = annotations.clone();
        fs::write(&path, config.to_string()).unwrap();
        chown(&path, Some(self.user), Some(self.user)).unwrap();
    }

    fn runc(&self, ours: bool, words: &[&str]) -> Outcome {
        let program =
            if ours { self.folder.path().join("discnice-runc") } else { PathBuf::from("runc") };
        run(self.command(&program).arg("--root").arg(self.folder.path().join("state")).args(words))
    }

    /// Whether the container has a class.
    fn has_class(&self, container: &str) -> bool {
        let classes = run(self.command(&product::program()).args(["class", "list", "--json"]))
            .succeeded()
            .text();
        classes.contains(&format!("container-{container}\""))
    }
}

fn milliseconds(outcome: Outcome) -> u64 {
    let text = outcome.succeeded().text();
    text.trim().parse().unwrap_or_else(|_| panic!("no number: {text:?}"))
}

/// Why there are no containers here.
fn obstacle() -> Option<&'static str> {
    if !product::is_root() {
        return Some("the superuser, who alone makes containers and acts as other users");
    }
    let has = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|one| one.join(name).exists())
    };
    ["runc", "musl-gcc"].into_iter().find(|name| !has(name))
}

#[test]
fn programs_of_any_c_library_are_held() {
    if let Some(missing) = obstacle() {
        skip!("needs {missing}");
    }
    hold_all(0);
}

#[test]
fn so_they_are_without_root() {
    if let Some(missing) = obstacle() {
        skip!("needs {missing}");
    }
    hold_all(USER);
}

/// Holds each program in a container, and none by runc alone or without an annotation.
fn hold_all(user: u32) {
    let bundle = Bundle::new(user);
    for (name, _) in PROGRAMS {
        let container = format!("dn-{user}-{name}-{}", std::process::id());
        let program = format!("/bin/{name}");
        let annotations = json!({ "io.discnice.disk": "4M", "else": "1" });
        bundle.configure(&[&program, "/tmp/data"], &annotations);
        let held = milliseconds(bundle.runc(true, &["run", &container]));
        assert!(held >= LEAST, "{container}: {held} ms");
        assert!(!bundle.has_class(&container), "{container}");
        let free = milliseconds(bundle.runc(false, &["run", &container]));
        assert!(free < LEAST, "{container}, by runc alone: {free} ms");
    }
    bundle.configure(&["/bin/static", "/tmp/data"], &json!({}));
    let container = format!("dn-{user}-free-{}", std::process::id());
    let free = milliseconds(bundle.runc(true, &["run", &container]));
    assert!(free < LEAST, "without an annotation: {free} ms");
}

#[test]
fn a_container_is_created_started_entered_and_deleted() {
    if let Some(missing) = obstacle() {
        skip!("needs {missing}");
    }
    let bundle = Bundle::new(0);
    let container = format!("dn-life-{}", std::process::id());
    bundle.configure(
        &["/bin/static", "/tmp/one"],
        &json!({ "io.discnice.disk": "4M", "io.discnice.strict": "true" }),
    );
    let _ = bundle.runc(true, &["create", "--bundle", ".", &container]).succeeded();
    assert!(bundle.has_class(&container));
    // Waits in the state `created`, and is in the class already; what is added shares its limit.
    let entered = milliseconds(bundle.runc(true, &["exec", &container, "/bin/musl", "/tmp/two"]));
    assert!(entered >= LEAST, "{entered} ms");
    let _ = bundle.runc(true, &["delete", "--force", &container]).succeeded();
    assert!(!bundle.has_class(&container));
}

#[test]
fn what_is_no_rate_starts_nothing() {
    if let Some(missing) = obstacle() {
        skip!("needs {missing}");
    }
    let bundle = Bundle::new(USER);
    let log = bundle.folder.path().join("run/log");
    let log = log.to_str().unwrap();
    for (annotations, why) in [
        (json!({ "io.discnice.disk": "quick" }), "annotation io.discnice.disk: "),
        (json!({ "io.discnice.disk": 5 }), "annotation io.discnice.disk: it is no text"),
        (json!({ "io.discnice.dsik": "5M" }), "annotation io.discnice.dsik: "),
    ] {
        bundle.configure(&["/bin/static", "/tmp/data"], &annotations);
        let refused = bundle.runc(true, &["--log", log, "--log-format=json", "run", "dn-refused"]);
        assert_eq!((refused.status, refused.text().as_str()), (Some(125), ""), "{refused:?}");
        let line = refused.complaint();
        assert!(line.contains(why) && line.lines().count() == 1, "{line}");
        assert!(!bundle.folder.path().join("bundle/rootfs/tmp/data").exists());
        let checked = bundle.runc(true, &["check"]);
        assert_eq!((checked.status, checked.complaint()), (Some(125), line), "{checked:?}");
        let logged = fs::read_to_string(log).unwrap();
        let last: Value = serde_json::from_str(logged.lines().last().unwrap()).unwrap();
        assert!(last["msg"].as_str().unwrap().contains(why), "{last}");
    }
    bundle.configure(&["/bin/static", "/tmp/data"], &json!({ "io.discnice.disk": "5M" }));
    bundle.runc(true, &["check"]).succeeded();
    assert!(!bundle.has_class("check"));
    let version = bundle.runc(true, &["--version"]).succeeded();
    assert!(version.text().contains("runc"), "{version:?}");
}
