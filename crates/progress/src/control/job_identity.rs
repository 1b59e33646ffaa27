//! Which job is this? Targets are kept by the answer.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use discnice_processes::tree::{self, Process};

/// Programs that run other programs' texts: what they do depends on the first file that they are
/// given. A number at the end (`python3.12`) is not part of the name.
const INTERPRETERS: [&str; 16] = [
    "bash", "dash", "ksh", "sh", "zsh", "fish", "busybox", "python", "perl", "ruby", "node", "php",
    "lua", "Rscript", "java", "tclsh",
];

/// The executable and, of an interpreter, the script; empty if this user may not look at the process. `None` while
/// it begins a program, and when it ends: its memory goes, and with that what it executes, before it is a zombie.
#[must_use]
pub fn of(process: Process) -> Option<String> {
    if !tree::can_be_looked_at(process.id()) {
        return None;
    }
    let proc = PathBuf::from(format!("/proc/{}", process.id()));
    let executable = match fs::read_link(proc.join("exe")) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Some(String::new()),
        Err(_) => return None,
    };
    let words = fs::read(proc.join("cmdline")).unwrap_or_default();
    let folder = fs::read_link(proc.join("cwd")).unwrap_or_default();
    // What was read in between is that program's only if it is still there.
    fs::read_link(proc.join("exe")).ok().filter(|now| *now == executable)?;
    let executable = unmarked(executable);
    let script = script(&executable, &words, &folder).unwrap_or_default();
    Some(format!("{}\0{}", executable.display(), script.display()))
}

/// A path without what the kernel adds to that of a file that is gone, as a program's is once it was upgraded.
fn unmarked(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(rest) => OsStr::from_bytes(rest).into(),
        None => path,
    }
}

fn script(executable: &Path, words: &[u8], folder: &Path) -> Option<PathBuf> {
    let name = executable.file_name()?.to_str()?;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let arguments = words.split(|byte| *byte == 0).skip(1).filter(|word| !word.is_empty());
    let paths = arguments.map(|word| folder.join(OsStr::from_bytes(word)));
    paths.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_interpreters_have_scripts() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job"), "").unwrap();
        let wanted = Some(folder.path().join("job"));
        let found =
            |executable: &str, words: &[u8]| script(Path::new(executable), words, folder.path());
        assert_eq!(found("/usr/bin/python3.11", b"python3\0-O\0job\0other\0"), wanted);
        assert_eq!(found("/bin/sh", b"sh\0-e\0./job\0").map(|p| p.is_file()), Some(true));
        assert_eq!(found("/bin/sh", b"sh\0-c\0true\0"), None);
        assert_eq!(found("/usr/bin/tar", b"tar\0-cf\0job\0"), None);
        assert_eq!(found("", b""), None);
    }

    #[test]
    fn a_program_that_was_replaced_while_it_runs_is_the_same_job() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("job");
        let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
        assert!(copied.unwrap().success());
        let mut child = Command::new(&program).arg("100").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        let before = of(process);
        fs::remove_file(&program).unwrap();
        let after = of(process);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            (before.as_deref(), &after),
            (Some(format!("{}\0", program.display()).as_str()), &before)
        );
    }

    #[test]
    fn of_a_living_process() {
        let own = Process::find(std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(of(own), Some(format!("{}\0", program.display())));
    }

    #[test]
    fn a_process_that_ends_is_no_other_job() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        assert!(of(process).is_some());
        child.kill().unwrap();
        while process.stat().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let ended = of(process);
        child.wait().unwrap();
        assert_eq!((ended, of(process)), (None, None));
    }
}
