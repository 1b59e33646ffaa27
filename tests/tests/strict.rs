//! `discnice run --strict`: a command for which a limit cannot hold is not started, and one line says why.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};

/// The product without some of its parts, in a folder of its own.
struct Parts(tempfile::TempDir);

impl Parts {
    /// Of `discnice`, and of the library if `library`.
    fn new(library: bool) -> Self {
        let folder = product::folder();
        let program = product::program();
        let copy = |name: &str| {
            product::copy_program(program.with_file_name(name), folder.path().join(name));
        };
        copy("discnice");
        if library {
            copy("libdiscnice.so");
        }
        Self(folder)
    }

    fn run(&self, words: &[&str]) -> Outcome {
        run(self.command(words).arg("--").args(self.touch()))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = product::as_user(self.0.path().join("discnice"));
        command.arg("run").args(words).env_remove("DISCNICE_STRICT");
        command
    }

    fn touch(&self) -> [PathBuf; 2] {
        ["/usr/bin/touch".into(), self.started()]
    }

    fn started(&self) -> PathBuf {
        self.0.path().join("started")
    }
}

/// One line that says what, why, and what to do; nothing was started.
fn assert_refused(outcome: &Outcome, started: &Path, why: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("discnice: not started (--strict): "), "{complaint}");
    assert!(complaint.contains(why) && complaint.contains("; "), "{complaint}");
    assert!(!started.exists(), "it was started");
}

/// It was started, with a line that says why the limit does not hold, and how to refuse it.
fn assert_warned(outcome: &Outcome, started: &Path, why: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(complaint.contains(why) && complaint.contains("--strict refuses"), "{complaint}");
    assert!(started.exists(), "it was not started");
    fs::remove_file(started).expect("it is there");
}

#[test]
fn a_library_that_is_missing_is_done_without() {
    let parts = Parts::new(false);
    for strict in [&[][..], &["--strict"]] {
        let begun = Instant::now();
        let mut command = parts.command(&["--disk", "4M"]);
        let write = ["--", "dd", "if=/dev/zero", "bs=1M", "count=8", "status=none"];
        let of = format!("of={}", parts.started().display());
        let held = run(command.args(strict).args(write).arg(of));
        assert_eq!((held.status, held.complaint().as_str()), (Some(0), ""), "{strict:?}");
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(1_500), "8 MiB at 4 MiB/s in {took:?} {strict:?}");
    }
    fs::remove_file(parts.started()).expect("it is there");
    let asked = parts.run(&["--disk", "5M", "--mechanism", "preload"]);
    assert_warned(&asked, &parts.started(), "libdiscnice.so");
}

#[test]
fn a_program_with_other_rights() {
    if !product::is_root() {
        skip!("a set-uid program of the user itself has no other rights");
    }
    let parts = Parts::new(true);
    let program = parts.0.path().join("privileged");
    product::copy_program("/usr/bin/touch", &program);
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("ours");
    let words = [program.as_os_str(), parts.started().into_os_string().leak()];
    let warned = run(parts.command(&["--disk", "5M"]).arg("--").args(words));
    assert_warned(&warned, &parts.started(), "other rights");
    let refused = run(parts.command(&["--disk", "5M", "--strict"]).arg("--").args(words));
    assert_refused(&refused, &parts.started(), "other rights");
}

#[test]
fn shared_memory_that_is_forbidden() {
    let parts = Parts::new(true);
    let allowed = Command::new("unshare").args(["--ipc", "true"]).status();
    if !product::is_root() || !allowed.is_ok_and(|status| status.success()) {
        skip!("only root makes a machine without shared memory, in segments or files");
    }
    let none = |strict: &str| {
        let script = format!(
            "echo 0 > /proc/sys/kernel/shmmni && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
             prlimit --fsize=100000 {}/discnice run {strict} --disk 5M -- touch {}",
            parts.0.path().display(),
            parts.started().display()
        );
        run(Command::new("unshare").args(["--ipc", "sh", "-c", &script]))
    };
    assert_warned(&none(""), &parts.started(), "not limited");
    assert_refused(&none("--strict"), &parts.started(), "not limited");
}

#[test]
fn a_watcher_that_cannot_be_started() {
    let parts = Parts::new(true);
    let runtime = parts.0.path().join("run");
    let directory = runtime.join("discnice");
    // The socket's name tells the layout of classes.
    for layout in 0..100 {
        let socket = directory.join(format!("policyd-{layout}.sock"));
        fs::create_dir_all(&socket).expect("a folder in the socket's place");
    }
    let own = Command::new("chown").args(["-R", "65534:65534"]).arg(&runtime).status();
    assert!(!product::is_root() || own.expect("chown").success());
    for one in [&directory, &runtime] {
        fs::set_permissions(one, Permissions::from_mode(0o700)).expect("ours");
    }
    let mut command = parts.command(&["--strict", "--disk", "5M"]);
    command.env("XDG_RUNTIME_DIR", runtime);
    let refused = run(command.arg("--").args(parts.touch()));
    assert_refused(&refused, &parts.started(), "not watched from outside");
}

#[test]
fn strictness_is_an_option_a_variable_or_a_configuration() {
    const PRIVILEGED: &str = "/bin/su";
    if !fs::metadata(PRIVILEGED).is_ok_and(|found| found.permissions().mode() & 0o4000 != 0) {
        skip!("{PRIVILEGED} is not there, or not setuid");
    }
    let parts = Parts::new(true);
    let config = parts.0.path().join("config");
    fs::create_dir_all(config.join("discnice")).expect("a folder");
    fs::write(config.join("discnice/config.toml"), "strict = true\n").expect("a file");
    let with = |variable: &str, config: &Path| {
        let mut command = parts.command(&["--disk", "5M"]);
        command.env("XDG_CONFIG_HOME", config).env("DISCNICE_STRICT", variable);
        run(command.args(["--", PRIVILEGED, "--version"]))
    };
    let (none, why) = (Path::new("/nonexistent"), "other rights");
    assert_refused(&with("1", none), &parts.started(), why);
    assert_refused(&with("", &config), &parts.started(), why);
    let lenient = with("0", &config);
    let complaint = lenient.complaint();
    assert!(lenient.status == Some(0) && complaint.contains("--strict refuses"), "{lenient:?}");
    let odd = with("perhaps", none);
    assert_eq!(odd.status, Some(125), "{odd:?}");
    assert!(odd.complaint().contains("DISCNICE_STRICT") && !parts.started().exists(), "{odd:?}");
    let mut preload = parts.command(&["--disk", "5M", "--strict", "--mechanism", "preload"]);
    let preload = run(preload.arg("--").args(parts.touch()));
    assert!(
        preload.status == Some(125) && preload.complaint().contains("--mechanism"),
        "{preload:?}"
    );
}

/// A setuid child would leave the library and could be neither traced nor stopped. Under `--strict` it runs without
/// the other rights, and so with the library.
#[test]
fn a_child_with_other_rights_is_held_without_them() {
    let parts = Parts::new(true);
    let program = parts.0.path().join("privileged");
    product::copy_program("/bin/sh", &program);
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("ours");
    let script = format!(
        "{} -pc 'id -u; while read line; do case $line in *libdiscnice.so*) echo held; break; esac; done \
         < /proc/self/maps'; true",
        program.display()
    );
    let told = |words: &[&str]| run(parts.command(words).args(["--", "sh", "-c", &script]));
    let free = told(&["--disk", "5M"]).succeeded();
    let strict = told(&["--disk", "5M", "--strict"]).succeeded();
    if product::is_root() {
        assert_eq!(free.text(), "0\n", "{free:?}");
        assert_eq!(strict.text(), "65534\nheld\n", "{strict:?}");
    }
    assert_eq!(strict.complaint(), "");
}

/// What nothing held is told at the end, while it runs, and to scrapers, with what it moved: here a static child,
/// which `--mechanism preload` leaves alone, and one with other rights.
#[test]
fn what_was_not_held_is_told_with_its_reason_and_its_bytes() {
    if !product::is_root() || !Path::new("/bin/busybox").exists() {
        skip!(
            "a program with other rights than the test's needs root, and a static one busybox-static"
        );
    }
    let parts = Parts::new(true);
    let at = |name: &str| parts.0.path().join(name);
    product::copy_program("/usr/bin/dd", at("privileged"));
    fs::set_permissions(at("privileged"), Permissions::from_mode(0o4755)).expect("ours");
    let script = "mkfifo one two; busybox dd if=one of=data bs=64k 2>/dev/null & \
        ./privileged if=two of=/dev/null 2>/dev/null & exec 3>one 4>two; head -c 4194304 /dev/zero >&3; sleep 1; \
        ./discnice status; ./discnice metrics; exec 3>&- 4>&-; wait";
    let mut command = parts.command(&["--mechanism", "preload", "--disk", "50M", "--summary"]);
    command.current_dir(parts.0.path()).args(["--report", "report.json", "--", "sh", "-c", script]);
    let told = run(&mut command).succeeded();
    let (shown, summary) = (told.text(), told.complaint());
    for text in [&shown, &summary] {
        let lines = || text.lines().filter(|line| line.contains("NOT LIMITED: "));
        let of = |why: &str| lines().find(|line| line.contains(why)).unwrap_or_default();
        assert!(of("statically linked").contains("; it moved "), "{text}");
        assert!(!of("other rights").is_empty(), "{text}");
    }
    // Besides the 4 MiB it may have read its own file.
    let moved = |bytes: &u64| (4 << 20..32 << 20).contains(bytes);
    let metrics =
        shown.lines().filter(|line| line.starts_with("discnice_class_not_limited_bytes{"));
    let mut numbers = metrics.filter_map(|line| line.rsplit(' ').next()?.parse().ok());
    assert!(numbers.any(|bytes| moved(&bytes)), "{shown}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(at("report.json")).expect("a report")).expect("JSON");
    let list = report["not_limited"].as_array().expect("a list");
    let fixed = list.iter().find(|one| one["bytes"].as_u64().is_some_and(|bytes| moved(&bytes)));
    let fixed = fixed.expect("the static one");
    assert!(fixed["reason"].as_str().expect("a reason").contains("statically linked"), "{report}");
    assert!(list.iter().any(|one| one["bytes"].is_null()), "{report}");
}
