//! One slot of the ledger: a process with a promise, one that waits, or one that competes.

use std::fs;

use discnice_sys::procfs;
use discnice_units::Bytes;

/// First bytes of every slot in use; changes when the layout does.
const MAGIC: u64 = u64::from_le_bytes(*b"dnmem\0\0\x01");
/// Bytes of a slot.
pub const SLOT: usize = 64;
/// Ticket of a member; others count from 1.
pub const MEMBER: u64 = 0;

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Process that was promised something, waits or competes.
    pub pid: u32,
    /// Start time of the process in clock ticks since boot: ids are used again.
    pub started: u64,
    /// Distinguishes the entries of a process, and orders the waiting ones. [`MEMBER`] in the entry
    /// that says that the process competes for memory.
    pub ticket: u64,
    /// Promised bytes; 0 while waiting.
    pub bytes: u64,
    /// Promised bytes that were touched, so that the kernel's figures include them. For a command
    /// ([`Entry::is_command`]), what it uses is looked up instead; for a member, this is the moment
    /// of its last request, in milliseconds since boot.
    pub touched: u64,
    /// Set for `discnice admit`, which becomes a command.
    pub is_command: bool,
}

impl Entry {
    /// An entry of this process that has touched nothing yet.
    pub fn own(ticket: u64, bytes: Bytes, is_command: bool) -> Self {
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or(0);
        Self { pid, started, ticket, bytes: bytes.get(), touched: 0, is_command }
    }

    /// Returns the entry as it is written.
    pub fn to_bytes(self) -> [u8; SLOT] {
        let words = [
            MAGIC,
            u64::from(self.pid),
            self.started,
            self.ticket,
            self.bytes,
            self.touched,
            u64::from(self.is_command),
        ];
        let mut slot = [0; SLOT];
        for (place, word) in slot.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        slot
    }

    /// `None` of a free slot and of one with a foreign layout.
    pub fn from_bytes(slot: &[u8]) -> Option<Self> {
        let word = |index: usize| {
            slot.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_le_bytes)
        };
        (word(0)? == MAGIC).then_some(())?;
        Some(Self {
            pid: word(1)?.try_into().ok()?,
            started: word(2)?,
            ticket: word(3)?,
            bytes: word(4)?,
            touched: word(5)?,
            is_command: word(6)? != 0,
        })
    }

    /// Returns the promised bytes that are not touched yet.
    pub fn outstanding(&self) -> u64 {
        let touched = if self.is_command { resident(self.pid) } else { self.touched };
        self.bytes.saturating_sub(touched)
    }
}

/// Returns field 22 of /proc/PID/stat; `None` for a process that has ended, even if it has not been
/// reaped yet.
pub fn start_time(pid: u32) -> Option<u64> {
    procfs::stat(pid).filter(|stat| !stat.has_ended()).map(|stat| stat.started)
}

/// Returns true if a signal or a tracer has stopped the process.
pub fn is_stopped(pid: u32) -> bool {
    procfs::stat(pid).is_some_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// Anonymous memory of a process and its descendants, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    // The name in it may be any bytes.
    let status = String::from_utf8_lossy(&status);
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let own: u64 =
        anonymous.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0);
    own * 1024 + children(pid).map(resident).sum::<u64>()
}

/// Children of each thread of a process. proc_tid_children(5)
fn children(pid: u32) -> impl Iterator<Item = u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts.flat_map(|text| {
        text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_child_counts_whichever_thread_made_it() {
        // A test has a thread of its own, which is not the first of the process.
        let script = "x=$(head -c 33554432 /dev/zero | tr '\\0' x); read -r line";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let promised = Entry::own(1, Bytes::new(1 << 40), true);
        let is_seen = || promised.outstanding() < (1 << 40) - (32 << 20);
        let start = std::time::Instant::now();
        while !is_seen() && start.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let seen = is_seen();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen, "what a child has touched is promised once more");
    }

    #[test]
    fn slots_keep_what_is_written() {
        let entry = Entry { pid: 7, started: 1, ticket: 2, bytes: 3, touched: 4, is_command: true };
        assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
        assert_eq!(Entry::from_bytes(&[0; SLOT]), None);
        assert_eq!(Entry::from_bytes(&[]), None);
    }
}
