//! What kind of program a file is: whether our library can enter it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// How a program can be regulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Dynamically linked: by our library.
    Dynamic,
    /// A script: its interpreter is what counts.
    Script(PathBuf),
    /// Statically linked, or linked by another dynamic linker's rules.
    Static,
    /// Linked for another kind of processor or word size.
    OtherMachine,
    /// Runs with other rights than its caller's; the dynamic linker then ignores us.
    Privileged,
    /// Not a program that we can read.
    Unknown,
}

impl Kind {
    /// Why the library cannot enter, for people; `None` when it can.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self {
            Self::Dynamic | Self::Script(_) | Self::Unknown => None,
            Self::Static => Some("is statically linked"),
            Self::OtherMachine => Some("is built for another kind of processor or word size"),
            Self::Privileged => {
                Some("runs with other rights than yours (setuid, setgid or capabilities)")
            }
        }
    }
}

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

/// What the file is; scripts are followed to their interpreter.
pub fn kind(path: &Path) -> Kind {
    match kind_of_file(path) {
        Kind::Script(interpreter) => match kind_of_file(&interpreter) {
            Kind::Dynamic | Kind::Unknown | Kind::Script(_) => Kind::Script(interpreter),
            obstacle => obstacle,
        },
        kind => kind,
    }
}

fn kind_of_file(path: &Path) -> Kind {
    let Ok(meta) = fs::metadata(path) else { return Kind::Unknown };
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    if read.is_err() {
        return Kind::Unknown;
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(line);
    }
    if !head.starts_with(b"\x7fELF") {
        return Kind::Unknown;
    }
    let privileged = meta.permissions().mode() & 0o6000 != 0 || has_capabilities(path);
    if privileged { Kind::Privileged } else { elf(&head) }
}

fn script(line: &[u8]) -> Kind {
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    let word = line[..end].trim_ascii_start().split(|byte| byte.is_ascii_whitespace()).next();
    Kind::Script(PathBuf::from(OsStr::from_bytes(word.unwrap_or_default())))
}

fn has_capabilities(path: &Path) -> bool {
    let mut none: [u8; 0] = [];
    rustix::fs::getxattr(path, "security.capability", &mut none[..]).is_ok_and(|size| size > 0)
}

/// Reads an ELF header (elf(5)): our class and machine, and an interpreter among its segments.
fn elf(head: &[u8]) -> Kind {
    const CLASS_64: u8 = 2;
    const PT_INTERP: u32 = 3;
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = head.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if head.get(4) != Some(&CLASS_64) || number(18, 2) != Some(machine) {
        return Kind::OtherMachine;
    }
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let (Some(table), Some(size), Some(count)) = (table, size, count) else { return Kind::Unknown };
    let interpreted = (0..count).any(|index| {
        let at = usize::try_from(table + index * size).unwrap_or(usize::MAX);
        at < head.len() && number(at, 4) == Some(PT_INTERP.into())
    });
    if interpreted { Kind::Dynamic } else { Kind::Static }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_programs() {
        assert_eq!(kind(Path::new("/bin/ls")), Kind::Dynamic);
        assert_eq!(kind(&std::env::current_exe().unwrap()), Kind::Dynamic);
        assert_eq!(kind(Path::new("/etc/passwd")), Kind::Unknown);
        assert_eq!(kind(Path::new("/sbin/ldconfig")).obstacle(), Some("is statically linked"));
    }

    #[test]
    fn scripts_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, "#! /bin/sh -e\n").unwrap();
        assert_eq!(kind(&path), Kind::Script(PathBuf::from("/bin/sh")));
        fs::write(&path, "#!/sbin/ldconfig\n").unwrap();
        assert_eq!(kind(&path), Kind::Static);
    }
}
