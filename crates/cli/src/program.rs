//! Programs as people name them, and what keeps our library out of them.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use discnice_regulator::startup::ProgramKind;

/// Where the shell would find `command`.
pub fn find(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(command));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Why a command could not be executed, and what to do about it.
pub fn trouble(name: &Path, error: &io::Error) -> String {
    let is_path = name.as_os_str().as_bytes().contains(&b'/');
    let meta = fs::metadata(name).ok().filter(|_| is_path);
    match (error.kind(), meta) {
        (io::ErrorKind::NotFound, Some(_)) => {
            format!(
                "{error}: it is there, but not the interpreter that it names; see its first line, or file(1)"
            )
        }
        (io::ErrorKind::NotFound, None) if is_path => {
            format!("{error}; give the path of a program")
        }
        (io::ErrorKind::NotFound, None) => {
            "no such program in PATH, and no such subcommand; see `discnice --help`".into()
        }
        (_, Some(meta)) if meta.is_dir() => "it is a directory; name a program in it".into(),
        (io::ErrorKind::PermissionDenied, Some(_)) => {
            format!("{error}; make it executable, see chmod(1)")
        }
        (io::ErrorKind::PermissionDenied, None) => {
            format!("{error}; see the permissions of its directories")
        }
        _ => format!("{error}; `discnice doctor` looks at programs"),
    }
}

/// Why no program can be executed from a path; `None` if one may be.
pub fn fault(path: &Path) -> Option<&'static str> {
    match fs::metadata(path) {
        Err(_) => Some("there is no such file"),
        Ok(meta) if meta.is_dir() => Some("it is a directory; name a program in it"),
        Ok(_) if !is_executable(path) => Some("it is not executable; see chmod(1)"),
        Ok(_) => None,
    }
}

/// What kind of program lies at a path; scripts are followed to their interpreter.
#[must_use]
pub fn kind(path: &Path) -> ProgramKind {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return ProgramKind::Unknown };
    discnice_regulator::startup::kind(libc::AT_FDCWD, path.as_ptr())
}

/// Why our library cannot enter, for people; `None` when it can.
#[must_use]
pub fn obstacle(kind: ProgramKind) -> Option<&'static str> {
    match kind {
        ProgramKind::Dynamic | ProgramKind::Unknown => None,
        ProgramKind::OtherLinker => Some("is loaded by another dynamic linker than glibc's (musl)"),
        ProgramKind::Static => Some("is statically linked"),
        ProgramKind::Go => Some("is written in Go and makes its system calls without libc"),
        ProgramKind::OtherMachine => Some("is built for another kind of processor or word size"),
        ProgramKind::Privileged => {
            Some("runs with other rights than yours (setuid, setgid or capabilities)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_the_library_out_is_told() {
        assert_eq!(obstacle(kind(Path::new("/bin/ls"))), None);
        assert_eq!(obstacle(kind(Path::new("/etc/passwd"))), None);
        assert_eq!(obstacle(kind(Path::new("/sbin/ldconfig"))), Some("is statically linked"));
    }
}
