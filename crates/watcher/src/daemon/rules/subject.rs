//! What rules are compared with: what `/proc` tells of a process.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::path::Path;

use discnice_sys::procfs;

use crate::process;

/// What a condition asks about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// The path of the program that it executes (`/proc/PID/exe`).
    Exe,
    /// Its name as the kernel has it (`/proc/PID/comm`).
    Name,
    /// The path of its control group (`/proc/PID/cgroup`).
    Cgroup,
    /// Its arguments with a blank between them (`/proc/PID/cmdline`).
    Cmdline,
}

impl Key {
    /// All, in the order of [`Subject`].
    pub const ALL: [Self; 4] = [Self::Exe, Self::Name, Self::Cgroup, Self::Cmdline];

    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exe => "exe",
            Self::Name => "name",
            Self::Cgroup => "cgroup",
            Self::Cmdline => "cmdline",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What tells one process, and one program that it executes, from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// When the process started, in clock ticks since boot.
    pub started: u64,
    /// Its name, and where its code and its stack begin: exec(2) changes them.
    execution: u64,
}

impl Identity {
    /// Reads it by one look; `None` for a process that has ended, or executes a program just now.
    #[must_use]
    pub fn read(id: u32) -> Option<Self> {
        if procfs::is_executing(id) {
            return None;
        }
        Self::parse(&read_once(Path::new(&format!("/proc/{id}/stat")), 1280)?)
    }

    /// From `/proc/PID/stat`: the name in parentheses may itself contain any character.
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        // Fields 22, 26 and 28 of proc_pid_stat(5), of which the third was just taken.
        let started = fields.nth(18)?.parse().ok()?;
        let (code, stack) = (fields.nth(3)?, fields.nth(1)?);
        let mut hasher = DefaultHasher::new();
        (name, code, stack).hash(&mut hasher);
        Some(Self { started, execution: hasher.finish() })
    }
}

/// Bytes of a command line that are looked at.
const LONGEST: usize = 16 << 10;
/// What the kernel appends to the path of a program with a file that is gone, as after an upgrade.
const DELETED: &str = " (deleted)";

/// A process as rules see it; a value that was not asked for, or cannot be read, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Subject([Option<String>; 4]);

impl Subject {
    /// Makes one of what is known.
    #[must_use]
    pub fn new(exe: &str, name: &str, cgroup: &str, cmdline: &str) -> Self {
        Self([exe, name, cgroup, cmdline].map(|value| Some(value.to_owned())))
    }

    /// Reads what these keys ask about a process; `None` for one that has ended, executes no program (a kernel thread),
    /// or may not be looked at.
    #[must_use]
    pub fn read(id: u32, keys: impl Iterator<Item = Key>) -> Option<Self> {
        let mut subject = Self::default();
        // Asked of each: it tells apart what a process was before it executed another program.
        let program = process::link(id, "exe").ok()?;
        let program = program.to_string_lossy();
        let exe = program.strip_suffix(DELETED).unwrap_or(&program).to_owned();
        subject.0[Key::Exe as usize] = Some(exe);
        for key in keys {
            if subject.value(key).is_none() {
                subject.0[key as usize] = read(id, key);
            }
        }
        Some(subject)
    }

    /// Its value for a key.
    #[must_use]
    pub fn value(&self, key: Key) -> Option<&str> {
        self.0.get(key as usize)?.as_deref()
    }
}

fn read(id: u32, key: Key) -> Option<String> {
    let text = |name: &str, most| read_once(Path::new(&format!("/proc/{id}/{name}")), most);
    match key {
        // Read already.
        Key::Exe => None,
        Key::Name => Some(text("comm", 64)?.trim_end_matches('\n').to_owned()),
        Key::Cgroup => group(&text("cgroup", 4096)?).map(str::to_owned),
        Key::Cmdline => Some(text("cmdline", LONGEST)?.trim_end_matches('\0').replace('\0', " ")),
    }
}

/// The path in the unified hierarchy; where there is none, in systemd's own. cgroups(7)
fn group(text: &str) -> Option<&str> {
    let of = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let named =
        || text.lines().find_map(|line| line.split_once(":name=systemd:").map(|(_, at)| at));
    of("0::").filter(|path| *path != "/").or_else(named).or_else(|| of("0::"))
}

/// What one read(2) of a file tells: it is of /proc, which tells no size.
fn read_once(path: &Path, most: usize) -> Option<String> {
    let mut bytes = vec![0; most];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_read_as_far_as_it_is_asked_for() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let read = Subject::read(child.id(), Key::ALL.into_iter()).unwrap();
        let less = Subject::read(child.id(), [Key::Name].into_iter()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(read.value(Key::Exe).unwrap().starts_with('/'));
        assert_eq!(read.value(Key::Name), Some("sleep"));
        assert_eq!(read.value(Key::Cmdline), Some("sleep 100"));
        assert!(read.value(Key::Cgroup).unwrap().starts_with('/'));
        assert_eq!((less.value(Key::Name), less.value(Key::Cmdline)), (Some("sleep"), None));
        assert_eq!(Subject::read(child.id(), Key::ALL.into_iter()), None);
    }

    #[test]
    fn a_process_that_executes_another_program_has_another_identity() {
        let wait = "read line; exec sleep 100";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", wait]).stdin(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        while Identity::read(id) == Identity::read(std::process::id()) || !is_named(id, "sh") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let before = Identity::read(id).unwrap();
        assert_eq!(Identity::read(id), Some(before));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        while !is_named(id, "sleep") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let after = Identity::read(id).unwrap();
        child.kill().unwrap();
        while Identity::read(id).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait().unwrap();
        assert_eq!(after.started, before.started);
        assert_ne!(after, before);
    }

    fn is_named(id: u32, name: &str) -> bool {
        let read = Subject::read(id, [Key::Name].into_iter());
        read.is_some_and(|subject| subject.value(Key::Name) == Some(name))
    }

    #[test]
    fn control_groups_of_both_kinds_are_told() {
        assert_eq!(group("0::/user.slice/a.scope\n"), Some("/user.slice/a.scope"));
        let hybrid = "12:pids:/x\n1:name=systemd:/user.slice/b.scope\n0::/\n";
        assert_eq!(group(hybrid), Some("/user.slice/b.scope"));
        assert_eq!((group("0::/\n"), group("4:pids:/x\n")), (Some("/"), None));
    }
}
