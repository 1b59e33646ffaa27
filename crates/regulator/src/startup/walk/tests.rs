use super::*;
use discnice_requirements::skip;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::string::String;
use std::vec::Vec;

/// Notes what is found.
#[derive(Default)]
struct Found(Vec<(PathBuf, u64)>);

impl Sink for Found {
    fn take(&mut self, file: &Opened, end: u64) {
        let path = std::format!("/proc/self/fd/{}", file.fd());
        self.0.push((std::fs::read_link(path).unwrap(), end));
    }
}

impl Found {
    fn files(&self) -> BTreeSet<PathBuf> {
        let files: BTreeSet<_> = self.0.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(files.len(), self.0.len(), "each once: {:?}", self.0);
        files
    }
}

fn of_program(path: &str) -> Found {
    let mut found = Found::default();
    let path = CString::new(path).unwrap();
    Walk::new(&mut found).program(libc::AT_FDCWD, path.as_ptr());
    found
}

/// What the dynamic linker itself says that it loads.
fn by_the_dynamic_linker(path: &str) -> Option<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").arg(path).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    Some(words.filter_map(|word| Path::new(word).canonicalize().ok()).collect())
}

#[test]
fn finds_what_the_dynamic_linker_finds() {
    for program in ["/usr/bin/git", "/usr/bin/curl", "/usr/bin/perl", "/bin/ls", "/bin/sh"] {
        let Ok(own) = Path::new(program).canonicalize() else { skip!("no {program}") };
        let Some(mut expected) = by_the_dynamic_linker(program) else { skip!("no ldd(1)") };
        expected.insert(own);
        assert_eq!(of_program(program).files(), expected, "{program}");
    }
}

#[test]
fn what_is_loaded_ends_within_the_file() {
    let own = std::env::current_exe().unwrap();
    let found = of_program(own.to_str().unwrap());
    let (_, end) = found.0.iter().find(|(path, _)| *path == own).expect("the test itself");
    // The symbols for debuggers lie behind.
    assert!(*end < own.metadata().unwrap().len());
}

#[test]
fn scripts_lead_to_their_interpreter() {
    let folder = std::env::temp_dir().join(std::format!("walk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (first, second) = (folder.join("first"), folder.join("second"));
    std::fs::write(&second, "#!/bin/sh\n").unwrap();
    std::fs::write(&first, std::format!("#! {} -x\n", second.display())).unwrap();
    for path in [&first, &second] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    assert_eq!(of_program(first.to_str().unwrap()).files(), of_program("/bin/sh").files());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn commands_are_looked_for_as_execvp_does() {
    let mut found = Found::default();
    Walk::new(&mut found).command(c"ls", b"/nonexistent::/etc:/usr/bin:/bin");
    assert_eq!(found.files(), of_program("/bin/ls").files());
    let mut none = Found::default();
    Walk::new(&mut none).command(c"passwd", b"/etc");
    assert!(none.0.is_empty(), "not executable: {:?}", none.0);
}

#[test]
fn libraries_are_found_by_name() {
    let mut found = Found::default();
    Walk::new(&mut found).library(c"libc.so.6");
    assert!(found.0.iter().any(|(path, _)| path.ends_with("libc.so.6")), "{:?}", found.0);
}

#[test]
fn what_cannot_be_opened_is_left_alone() {
    assert!(of_program("/nonexistent").0.is_empty());
    assert!(of_program("/etc").0.is_empty());
    let mut found = Found::default();
    Walk::new(&mut found).program(libc::AT_FDCWD, core::ptr::without_provenance(1));
    assert!(found.0.is_empty());
}
