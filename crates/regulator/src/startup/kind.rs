//! What kind of program a file is: whether our library can enter it.
//!
//! The one place that says so: the library asks it before a program is executed, `discnice run`, `doctor` and `status` ask
//! it for the same answer.

use core::ffi::{CStr, c_char};

use discnice_sys::execution;
use discnice_sys::opened::Opened;

use crate::startup::elf::{BUILD_ID, Elf};
use crate::startup::text::Text;
use crate::startup::walk::{DEFAULT_PATH, SCRIPTS, look_for, open_program};
use crate::startup::{Bytes, script};

/// How a program is loaded and makes its system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// By the dynamic linker of our library's own libc: it can enter.
    Dynamic,
    /// By the dynamic linker of another libc (musl), in which our library cannot run.
    OtherLinker,
    /// By the kernel alone.
    Static,
    /// Dynamically, but it makes its system calls itself: our library sees none of them.
    Go,
    /// For another kind of processor or word size.
    OtherMachine,
    /// With other rights than its caller's; the dynamic linker then loads nothing of ours.
    Privileged,
    /// Not a program that can be read here.
    Unknown,
}

impl ProgramKind {
    /// Returns true if our library is known not to enter the program, or to see nothing there.
    #[must_use]
    pub const fn is_foreign(self) -> bool {
        !matches!(self, Self::Dynamic | Self::Unknown)
    }
}

/// What kind of program lies at `path`, relative to the directory `at` (`AT_FDCWD` for the current one); it may be
/// anything. Scripts are followed to their interpreter.
#[must_use]
pub fn kind(at: i32, path: *const c_char) -> ProgramKind {
    of_program(open_program(at, path), &mut Text::new())
}

/// Returns the kind of the program that execvp(3) will find by this name in the directories of
/// `path`, the variable `PATH`.
#[must_use]
pub fn kind_of_command(name: &CStr, path: Option<&[u8]>) -> ProgramKind {
    if name.to_bytes().contains(&b'/') {
        return kind(libc::AT_FDCWD, name.as_ptr());
    }
    let mut text = Text::new();
    let found = look_for(name, path.unwrap_or(DEFAULT_PATH), &mut text);
    of_program(found, &mut text)
}

/// Returns the kind of the program in a descriptor's file, for fexecve(3).
#[must_use]
pub fn kind_of_opened(fd: i32) -> ProgramKind {
    of_program(Opened::reopen(fd).ok(), &mut Text::new())
}

/// What the linker made of the content of a program or library at this path.
#[must_use]
pub fn build_id(path: &CStr) -> Option<[u8; BUILD_ID]> {
    let file = Opened::open(libc::AT_FDCWD, path.as_ptr()).ok()?;
    Elf::read(&file)?.build_id(&file)
}

fn of_program(program: Option<Opened>, interpreter: &mut Text) -> ProgramKind {
    let mut next = program;
    for _ in 0..SCRIPTS {
        let Some(file) = next else { return ProgramKind::Unknown };
        if !script::interpreter(&file, interpreter) {
            return of_opened(&file, interpreter);
        }
        next = interpreter.path().and_then(|path| open_program(libc::AT_FDCWD, path));
    }
    ProgramKind::Unknown
}

fn of_opened(file: &Opened, scratch: &mut Text) -> ProgramKind {
    let kind = of_file(file, scratch);
    let is_program = kind != ProgramKind::Unknown;
    if is_program && execution::gains_rights(file.fd()) { ProgramKind::Privileged } else { kind }
}

/// What the bytes of a file alone say.
fn of_file(file: &impl Bytes, scratch: &mut Text) -> ProgramKind {
    if !Elf::is_one(file) {
        return ProgramKind::Unknown;
    }
    if !Elf::is_of_this_machine(file) {
        return ProgramKind::OtherMachine;
    }
    let Some(elf) = Elf::read(file) else { return ProgramKind::Unknown };
    if !elf.is_dynamic() {
        return ProgramKind::Static;
    }
    if !elf.interpreter(file, scratch) || !is_our_linker(scratch.bytes()) {
        return ProgramKind::OtherLinker;
    }
    if elf.is_go(file) { ProgramKind::Go } else { ProgramKind::Dynamic }
}

/// Returns true if a dynamic linker is glibc's, by its file's name: `ld-linux-x86-64.so.2`, in
/// whatever directory; `ld-lsb-…` of the Linux Standard Base; `ld-2.31.so` of a libc beside the
/// system's.
fn is_our_linker(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [&b"ld-linux"[..], b"ld-lsb", b"ld-2."].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use discnice_requirements::skip;

    use super::*;
    use proptest::prelude::*;
    use std::ffi::CString;
    use std::path::Path;
    use std::vec::Vec;

    fn at(path: &Path) -> ProgramKind {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        kind(libc::AT_FDCWD, path.as_ptr())
    }

    fn of(file: &[u8]) -> ProgramKind {
        of_file(&file, &mut Text::new())
    }

    #[test]
    fn real_programs() {
        assert_eq!(at(Path::new("/bin/ls")), ProgramKind::Dynamic);
        assert_eq!(at(&std::env::current_exe().unwrap()), ProgramKind::Dynamic);
        assert_eq!(at(Path::new("/etc/passwd")), ProgramKind::Unknown);
        assert_eq!(at(Path::new("/nowhere")), ProgramKind::Unknown);
        assert_eq!(at(Path::new("/sbin/ldconfig")), ProgramKind::Static);
        assert_eq!(kind(libc::AT_FDCWD, core::ptr::without_provenance(1)), ProgramKind::Unknown);
    }

    #[test]
    fn commands_are_looked_for_as_execvp_does() {
        let of = |name: &CStr, path: &[u8]| kind_of_command(name, Some(path));
        assert_eq!(of(c"ls", b"/nowhere::/etc:/usr/bin:/bin"), ProgramKind::Dynamic);
        assert_eq!(of(c"ldconfig", b"/usr/bin:/sbin"), ProgramKind::Static);
        assert_eq!(of(c"/sbin/ldconfig", b""), ProgramKind::Static);
        assert_eq!(of(c"passwd", b"/etc"), ProgramKind::Unknown, "not executable");
        assert_eq!(kind_of_command(c"sh", None), ProgramKind::Dynamic);
    }

    #[test]
    fn open_files_are_looked_at() {
        let program = Opened::open(libc::AT_FDCWD, c"/sbin/ldconfig".as_ptr()).unwrap();
        assert_eq!(kind_of_opened(program.fd()), ProgramKind::Static);
        assert_eq!(kind_of_opened(-1), ProgramKind::Unknown);
    }

    #[test]
    fn build_ids_are_those_that_the_linker_wrote() {
        let program = c"/bin/sh";
        let Ok(told) = std::process::Command::new("file").arg("-L").arg("/bin/sh").output() else {
            skip!("no file(1)");
        };
        let told = std::string::String::from_utf8(told.stdout).unwrap();
        let Some((_, told)) = told.split_once("BuildID[sha1]=") else {
            skip!("a /bin/sh without a build id");
        };
        let id = build_id(program).expect("it has one");
        let digits: std::string::String =
            id.iter().map(|byte| std::format!("{byte:02x}")).collect();
        assert!(told.starts_with(&digits), "{told}");
        assert_eq!(build_id(c"/etc/passwd"), None);
    }

    #[test]
    fn scripts_are_followed() {
        let folder = std::env::temp_dir().join(std::format!("kind-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("script");
        for (line, expected) in [
            ("#! /bin/sh -e\n", ProgramKind::Dynamic),
            ("#!/sbin/ldconfig\n", ProgramKind::Static),
            ("#!/nowhere\n", ProgramKind::Unknown),
            ("echo\n", ProgramKind::Unknown),
        ] {
            std::fs::write(&script, line).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&script, mode).unwrap();
            assert_eq!(at(&script), expected, "{line}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A program with this dynamic linker, and with notes by these owners.
    fn program(linker: Option<&[u8]>, owners: &[[u8; 4]]) -> Vec<u8> {
        const NAME: u64 = 64 + 2 * 56;
        const NOTES: u64 = NAME + 64;
        let mut file = std::vec![0; 64];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        file[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        (file[54], file[56]) = (56, 2);
        let length = owners.len() as u64 * 24;
        let kind = if linker.is_some() { 3u8 } else { 0 };
        for (kind, at, length) in [(kind, NAME, 64), (4, NOTES, length)] {
            let mut segment = [0; 56];
            segment[0] = kind;
            segment[8..16].copy_from_slice(&at.to_le_bytes());
            segment[32..40].copy_from_slice(&length.to_le_bytes());
            file.extend(segment);
        }
        file.extend(linker.unwrap_or_default());
        file.resize(NOTES as usize, 0);
        for owner in owners {
            for number in [4u32, 8, 4] {
                file.extend(number.to_le_bytes());
            }
            file.extend(owner);
            file.extend([7; 8]);
        }
        file
    }

    #[test]
    fn the_dynamic_linker_decides() {
        let linkers = [
            (&b"/lib64/ld-linux-x86-64.so.2"[..], ProgramKind::Dynamic),
            (b"/lib/ld-linux-aarch64.so.1", ProgramKind::Dynamic),
            (b"/nix/store/x-glibc-2.40/lib/ld-linux-x86-64.so.2", ProgramKind::Dynamic),
            (b"/opt/libc/ld-2.31.so", ProgramKind::Dynamic),
            (b"/lib/ld-musl-x86_64.so.1", ProgramKind::OtherLinker),
            (b"/system/bin/linker64", ProgramKind::OtherLinker),
            (b"", ProgramKind::OtherLinker),
        ];
        for (linker, expected) in linkers {
            assert_eq!(of(&program(Some(linker), &[])), expected, "{linker:?}");
        }
        assert_eq!(of(&program(None, &[*b"GNU\0"])), ProgramKind::Static);
    }

    #[test]
    fn go_is_known_by_its_note() {
        let linker = Some(&b"/lib64/ld-linux-x86-64.so.2"[..]);
        assert_eq!(of(&program(linker, &[*b"GNU\0", *b"Go\0\0"])), ProgramKind::Go);
        assert_eq!(
            of(&program(linker, &[*b"GNU\0", *b"Mo\0\0"])),
            ProgramKind::Dynamic,
            "another's note"
        );
    }

    #[test]
    fn other_machines_are_known_by_the_header() {
        let linker = Some(&b"/lib/ld-linux.so.2"[..]);
        for (place, byte) in [(4, 1), (18, 3), (18, 40)] {
            let mut file = program(linker, &[]);
            file[place] = byte;
            assert_eq!(of(&file), ProgramKind::OtherMachine, "{place}: {byte}");
        }
        assert_eq!(of(b"\x7fELF\x02"), ProgramKind::Unknown, "no whole header");
        assert_eq!(of(&program(linker, &[])[..100]), ProgramKind::Unknown, "cut in its headers");
    }

    proptest! {
        /// Whatever the bytes, there is an answer, and one that the header allows.
        #[test]
        fn damaged_files_are_survived(
            damage in prop::collection::vec((0usize..400, any::<u8>()), 0..40),
            length in 0usize..400,
        ) {
            let mut file = program(Some(b"/lib64/ld-linux-x86-64.so.2"), &[*b"GNU\0", *b"Go\0\0"]);
            let whole = file.len();
            for (at, byte) in damage {
                file[at % whole] = byte;
            }
            file.truncate(length);
            let kind = of(&file);
            let bytes = &file[..];
            let _ = Elf::read(&bytes).and_then(|elf| elf.build_id(&bytes));
            if !file.starts_with(b"\x7fELF") {
                prop_assert_eq!(kind, ProgramKind::Unknown);
            }
            prop_assert_ne!(kind, ProgramKind::Privileged);
        }
    }
}
