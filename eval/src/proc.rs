//! Readers of /proc that more than one part needs.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of proc_pid_stat(5)).
    pub started: u64,
}

impl ProcessId {
    /// The process that has the number `pid` now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: Stat::of(pid)?.started })
    }

    /// Whether it still runs (a zombie does not).
    #[must_use]
    pub fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }
}

/// The processes of a group that run now.
pub fn of_group(group: u32) -> impl Iterator<Item = (u32, Stat)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|pid| Some((pid, Stat::of(pid)?))).filter(move |(_, stat)| stat.group == group)
}

/// What we use of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// One letter, `Z` for a zombie.
    pub state: char,
    /// Process group.
    pub group: u32,
    /// User and system time, in clock ticks.
    pub cpu_ticks: u64,
    /// Start, in clock ticks since boot.
    pub started: u64,
}

impl Stat {
    /// Reads it; `None` if there is no such process.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may hold blanks and parentheses; the last ")" ends it. Field 3 comes next.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            group: fields.get(2)?.parse().ok()?,
            cpu_ticks: number(14)? + number(15)?,
            started: number(22)?,
        })
    }
}

/// What a process asked of files: proc_pid_io(5), with its children that it has waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Bytes that calls read and wrote, cached or not.
    pub bytes: u64,
    /// Calls that read or wrote.
    pub count: u64,
    /// Bytes that the disk moved for it, less what was deleted before it was written.
    pub disk_bytes: u64,
}

impl Calls {
    /// Reads it; nothing of a process that is gone or another user's.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default())
    }

    /// Of such a file's text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        Self {
            bytes: field("rchar") + field("wchar"),
            count: field("syscr") + field("syscw"),
            disk_bytes: (field("read_bytes") + field("write_bytes"))
                .saturating_sub(field("cancelled_write_bytes")),
        }
    }
}

/// Resident memory of a process, in bytes.
#[must_use]
pub fn resident(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Value of `key` in kB in /proc/meminfo, in bytes.
#[must_use]
pub fn meminfo(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let line = "7 (a) S 9) R 1 42 7 0 -1 4194304 1 2 3 4 11 22 5 6 20 0 1 0 999 1 1";
        let expected = Stat { state: 'R', group: 42, cpu_ticks: 33, started: 999 };
        assert_eq!(Stat::parse(line), Some(expected));
        assert_eq!(Stat::parse("7 (cut"), None);
    }

    #[test]
    fn calls_are_summed() {
        let text = "rchar: 7\nwchar: 1\nsyscr: 2\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n\
            cancelled_write_bytes: 4096\n";
        assert_eq!(Calls::parse(text), Calls { bytes: 8, count: 3, disk_bytes: 8192 });
        assert_eq!(Calls::parse(""), Calls::default());
    }

    #[test]
    fn we_are_alive() {
        let own = ProcessId::of(std::process::id()).expect("we have a stat file");
        assert!(own.is_alive());
        assert!(!ProcessId { started: own.started + 1, ..own }.is_alive());
        assert!(meminfo("MemTotal").expect("every kernel says it") > 1 << 20);
    }
}
