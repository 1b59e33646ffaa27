//! What a command becomes when it is executed: scripts are followed to their interpreters, as the kernel and env(1) do.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::program;

/// The kernel follows so many interpreters.
const INTERPRETERS: usize = 5;

/// The kernel reads no more of a first line.
const LINE: u64 = 256;

/// A process that a command begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Executed {
    /// Its program, without symbolic links.
    pub exe: PathBuf,
    /// What its name, /proc/PID/comm, is taken from.
    pub name: OsString,
    /// Its arguments, the first one included.
    pub arguments: Vec<OsString>,
}

impl Executed {
    /// Follows a command with the program at `path`.
    pub fn of(path: PathBuf, words: &[OsString]) -> Self {
        let name = path.file_name().unwrap_or_default().to_owned();
        let mut executed = Self { exe: path, name, arguments: words.to_vec() };
        for _ in 0..INTERPRETERS {
            let Some((interpreter, argument)) = interpreter_of(&executed.exe) else { break };
            executed.enter(interpreter, argument);
            executed.leave_env();
        }
        executed.exe = executed.exe.canonicalize().unwrap_or(executed.exe);
        executed
    }

    /// The kernel executes the interpreter of a script, and leaves its name.
    fn enter(&mut self, interpreter: PathBuf, argument: Option<OsString>) {
        let script = std::mem::replace(&mut self.exe, interpreter.clone()).into_os_string();
        let rest = self.arguments.drain(..).skip(1).collect::<Vec<_>>();
        let first = [interpreter.into_os_string()].into_iter().chain(argument).chain([script]);
        self.arguments = first.chain(rest).collect();
    }

    /// env(1) executes what it is told to, by another execve(2).
    fn leave_env(&mut self) {
        if self.exe.file_name() != Some(OsStr::new("env")) {
            return;
        }
        let Some(told) = self.arguments.get(1).map(|told| told.to_string_lossy().into_owned())
        else {
            return;
        };
        let told = told.strip_prefix("-S").unwrap_or(&told);
        let told = told.split_whitespace().skip_while(|word| word.contains('='));
        let words: Vec<OsString> = told.map(OsString::from).collect();
        let Some(found) = words.first().and_then(|word| program::find(word)) else { return };
        let rest = self.arguments.drain(..).skip(2).collect::<Vec<_>>();
        self.arguments = words.into_iter().chain(rest).collect();
        self.name = found.file_name().unwrap_or_default().to_owned();
        self.exe = found;
    }
}

/// The interpreter that the first line of a script names, and the rest of that line, which is one argument.
fn interpreter_of(path: &Path) -> Option<(PathBuf, Option<OsString>)> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LINE).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(end);
    let rest = Some(rest.trim_ascii()).filter(|rest| !rest.is_empty());
    let owned = |bytes| OsStr::from_bytes(bytes).to_owned();
    Some((owned(interpreter).into(), rest.map(owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(folder: &Path, script: &str) -> (String, String, String) {
        let path = folder.join("script");
        std::fs::write(&path, script).unwrap();
        let Executed { exe, name, arguments } =
            Executed::of(path.clone(), &["./script".into(), "x".into()]);
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        let line = words.join(" ").replace(&*path.to_string_lossy(), "SCRIPT");
        (exe.display().to_string(), name.into_string().unwrap(), line)
    }

    #[test]
    fn scripts_are_their_interpreters_with_their_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let sh = Path::new("/bin/sh").canonicalize().unwrap().display().to_string();
        let plain = executed(folder.path(), "#! /bin/sh -e\n");
        assert_eq!(plain, (sh.clone(), "script".into(), "/bin/sh -e SCRIPT x".into()));
        for line in ["#!/usr/bin/env sh\n", "#!/usr/bin/env -S A=b sh\n"] {
            let of_env = executed(folder.path(), line);
            assert_eq!(of_env, (sh.clone(), "sh".into(), "sh SCRIPT x".into()), "{line}");
        }
        let (exe, name, line) = executed(folder.path(), "\x7fELF");
        let own = folder.path().join("script").display().to_string();
        assert_eq!((exe, name, line), (own, "script".into(), "./script x".into()));
    }
}
