//! What programs load is a copy of the library: an upgrade, or its removal, changes nothing for those that run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use discnice_tests::process::run;
use discnice_tests::product;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// DiscNice in a folder of its own, with a private folder for what runs.
fn installed(folder: &Path) -> (PathBuf, PathBuf) {
    let (bin, runtime) = (folder.join("bin"), folder.join("runtime"));
    fs::create_dir(&bin).expect("our folder");
    let built = product::program();
    for name in ["discnice", "libdiscnice.so"] {
        product::copy_program(built.with_file_name(name), bin.join(name));
    }
    fs::create_dir(&runtime).expect("our folder");
    let own = fs::Permissions::from_mode(0o700);
    fs::set_permissions(&runtime, own).expect("our folder");
    let owner = if product::is_root() { 65534 } else { u32::MAX };
    if owner != u32::MAX {
        std::os::unix::fs::chown(&runtime, Some(owner), Some(owner)).expect("the superuser");
    }
    (bin.join("discnice"), runtime)
}

/// A job of one line of commands for each line that it reads.
const JOB: &str = "while read -r line; do eval \"$line\"; echo done; done";

struct Job {
    child: std::process::Child,
    output: std::io::BufReader<std::process::ChildStdout>,
}

impl Job {
    fn start(discnice: &Path, runtime: &Path, class: &str) -> Self {
        let mut command = product::as_user(discnice);
        command.args(["run", "--class", class, "--disk", "50M", "--", "sh", "-c", JOB]);
        command.env("XDG_RUNTIME_DIR", runtime);
        let piped = std::process::Stdio::piped;
        command.stdin(piped()).stdout(piped()).stderr(piped());
        let mut child = command.spawn().expect("it starts");
        let output = std::io::BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    /// What it prints for these commands.
    fn run(&mut self, line: &str) -> String {
        use std::io::{BufRead, Write};
        let input = self.child.stdin.as_mut().expect("piped");
        let _ = writeln!(input, "{line}");
        let (mut all, mut one) = (String::new(), String::new());
        while self.output.read_line(&mut one).expect("text") > 0 && one != "done\n" {
            all.push_str(&one);
            one.clear();
        }
        all
    }

    /// How it ends, and what was complained of meanwhile.
    fn end(mut self) -> (std::process::ExitStatus, String) {
        drop(self.child.stdin.take());
        let mut errors = String::new();
        let mut all = self.child.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut all, &mut errors).expect("text");
        (self.child.wait().expect("our child"), errors)
    }
}

#[test]
fn upgrade_and_removal_change_nothing_for_running_jobs() {
    let folder = product::folder();
    let (discnice, runtime) = installed(folder.path());
    let class = format!("test-upgrade-{}", std::process::id());
    let mut job = Job::start(&discnice, &runtime, &class);
    assert_eq!(job.run("echo one; cat /etc/passwd > /dev/null"), "one\n");
    // As cp(1) does: the same file gets other bytes.
    let library = discnice.with_file_name("libdiscnice.so");
    let size = fs::metadata(&library).expect("a file").len() as usize;
    fs::write(&library, vec![0xcc; size]).expect("a file");
    assert_eq!(job.run("echo two; cat /etc/passwd | wc -l > /dev/null; /bin/true"), "two\n");
    fs::write(&library, b"").expect("a file");
    assert_eq!(job.run("echo three; cat /etc/passwd | wc -l > /dev/null; /bin/true"), "three\n");
    fs::remove_file(&library).expect("a file");
    fs::remove_file(&discnice).expect("a file");
    assert_eq!(job.run("echo four; cat /etc/passwd | wc -l > /dev/null; /bin/true"), "four\n");
    let (status, errors) = job.end();
    assert!(status.success(), "{status:?}: {errors}");
    assert_eq!(errors, "");
    let mut remove = product::discnice(["class", "rm", "--force", &class]);
    let _ = run(remove.env("XDG_RUNTIME_DIR", &runtime));
}

/// The copies of the library in a private folder.
fn copies(runtime: &Path) -> Vec<PathBuf> {
    let place = runtime.join("discnice/library");
    let mut found: Vec<PathBuf> =
        fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[test]
fn one_copy_of_the_library_serves_all_and_a_forged_one_none() {
    let folder = product::folder();
    let (discnice, runtime) = installed(folder.path());
    let maps = "grep -o '/.*libdiscnice.so' /proc/self/maps | sort -u";
    let class = format!("test-copies-{}", std::process::id());
    let held = |words: &[&str]| {
        let mut command = product::as_user(&discnice);
        command.args(["run", "--class", &class, "--disk", "50M", "--"]).args(words);
        run(command.env("XDG_RUNTIME_DIR", &runtime))
    };
    let loaded = held(&["sh", "-c", maps]).succeeded();
    assert_eq!(loaded.complaint(), "");
    let first = copies(&runtime);
    assert_eq!(first.len(), 1, "{first:?}");
    let path = PathBuf::from(loaded.text().trim());
    assert!(path.starts_with(&first[0]), "{}: {first:?}", path.display());
    let mode = fs::metadata(&path).expect("the copy").permissions().mode();
    assert_eq!(mode & 0o7777, 0o500);
    assert_eq!(held(&["sh", "-c", maps]).succeeded(), loaded, "it is used again");
    // A copy that another user could have written to, or of another size, is not loaded.
    for forge in [
        |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("ours"),
        |path: &Path| {
            let _ = fs::remove_file(path);
            symlink("/etc/passwd", path).expect("ours");
        },
    ] {
        forge(&path);
        let next = held(&["sh", "-c", maps]).succeeded();
        assert_eq!(next.complaint(), "", "{next:?}");
        let used = PathBuf::from(next.text().trim());
        let meta = fs::symlink_metadata(&used).expect("what is loaded");
        assert!(meta.is_file(), "{}", used.display());
        assert!(used != path || meta.permissions().mode() & 0o7777 == 0o500, "{}", used.display());
    }
    // Where it cannot be written, the installed one is loaded.
    let _ = fs::remove_dir_all(runtime.join("discnice/library"));
    fs::write(runtime.join("discnice/library"), "").expect("a file in the way");
    let installed = held(&["sh", "-c", maps]).succeeded();
    assert_eq!(
        (installed.text().trim(), installed.complaint().as_str()),
        (text(&discnice.with_file_name("libdiscnice.so").canonicalize().expect("a file")), "")
    );
    let mut remove = product::discnice(["class", "rm", "--force", &class]);
    let _ = run(remove.env("XDG_RUNTIME_DIR", &runtime));
}
