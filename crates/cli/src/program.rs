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
    /// Dynamically linked, but makes its system calls itself: our library sees none of them.
    Go,
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
            Self::Go => Some("is written in Go and makes its system calls without libc"),
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
    const PT_INTERP: u64 = 3;
    const PT_NOTE: u64 = 4;
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
    let place = |index| usize::try_from(table + index * size).unwrap_or(usize::MAX);
    let places: Vec<usize> = (0..count).map(place).filter(|at| *at < head.len()).collect();
    let of_kind = |kind| places.iter().filter(move |at| number(**at, 4) == Some(kind));
    let interpreted = of_kind(PT_INTERP).next().is_some();
    let notes = of_kind(PT_NOTE).filter_map(|at| {
        let (from, length) = (number(at + 8, 8)? as usize, number(at + 32, 8)? as usize);
        head.get(from..from.checked_add(length)?.min(head.len()))
    });
    // The note of Go's linker: the length of its owner's name, and after two more numbers that name.
    let go = |mut note: &[u8]| loop {
        match note.first_chunk::<16>() {
            Some([4, 0, 0, 0, .., b'G', b'o', 0, 0]) => return true,
            Some(_) => note = &note[4..],
            None => return false,
        }
    };
    match (interpreted, notes.into_iter().any(go)) {
        (false, _) => Kind::Static,
        (true, true) => Kind::Go,
        (true, false) => Kind::Dynamic,
    }
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
    fn go_is_known_by_its_note() {
        let (table, notes) = (64u64, 64 + 2 * 56u64);
        let mut head = vec![0; 64];
        head[..5].copy_from_slice(b"\x7fELF\x02");
        head[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        head[32..40].copy_from_slice(&table.to_le_bytes());
        (head[54], head[56]) = (56, 2);
        for (kind, length) in [(3u8, 0u64), (4, 52)] {
            let mut segment = [0; 56];
            segment[0] = kind;
            segment[8..16].copy_from_slice(&notes.to_le_bytes());
            segment[32..40].copy_from_slice(&length.to_le_bytes());
            head.extend(segment);
        }
        for owner in [b"GNU\0", b"Go\0\0"] {
            for number in [4u32, 8, 4] {
                head.extend(number.to_le_bytes());
            }
            head.extend(owner);
            head.extend([7; 8]);
        }
        assert_eq!(elf(&head), Kind::Go);
        head[notes as usize + 24 + 12] = b'M';
        assert_eq!(elf(&head), Kind::Dynamic, "another's note");
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
