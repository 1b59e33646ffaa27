//! How a process is held from outside, and why.

//= discnice/5.5-malicious
/// How a process is made to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mechanism {
    /// By ptrace(2), which stops it.
    Ptrace = 1,
    /// By stop and continue signals.
    Signals = 2,
    /// By the answer to each of its calls (seccomp(2), user notification).
    Seccomp = 3,
    /// By a cgroup that is frozen.
    CgroupFreezer = 4,
    /// By our library in it.
    Preload = 5,
}

/// Why a process is regulated from outside, or why it is not although it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// There is nothing to say.
    None = 0,
    /// The user attached it while it ran.
    Attached = 1,
    /// It descends from a process that is regulated from outside.
    Descendant = 2,
    /// It executed a program in which our library never reported.
    NoLibrary = 3,
    /// It forbids itself the system calls that regulating needs.
    Confined = 4,
    /// Its account ran ahead of what it charged itself: page faults, io_uring, raw system calls.
    RanAhead = 5,
    /// A debugger traces it: it is counted, not held.
    Traced = 6,
    /// The system permits neither ptrace(2) nor signals: it is counted, not held.
    Forbidden = 7,
    /// Stopping it would show in its terminal: it is counted, not held.
    Foreground = 8,
    /// Its account is not readable: it is neither counted nor held.
    Hidden = 9,
    /// Its resident memory exceeds what its class may keep while others wait for memory.
    Memory = 10,
    /// The user paused it, or its class.
    Paused = 11,
    /// Each child of it has a class of its own, which only a watcher outside can give it.
    PerChild = 12,
}

impl Reason {
    /// Returns true if a process that is held from outside for this reason has no library of ours in it.
    #[must_use]
    pub const fn is_without_library(self) -> bool {
        matches!(self, Self::Attached | Self::Descendant | Self::NoLibrary | Self::PerChild)
    }
}

impl Mechanism {
    /// The mechanism that stands in shared memory; `None` for none, and for what is not one.
    pub(super) const fn from_claim(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::Ptrace,
            2 => Self::Signals,
            3 => Self::Seccomp,
            4 => Self::CgroupFreezer,
            5 => Self::Preload,
            _ => return None,
        })
    }

    /// What people call it, as `--mechanism` does: whatever stops a whole process freezes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptrace | Self::CgroupFreezer => "freeze",
            Self::Signals => "signals",
            Self::Seccomp => "seccomp",
            Self::Preload => "preload",
        }
    }

    /// Its place among what was charged, after that of what nothing holds; by one name it is one. `None` for the library, which
    /// charges its process itself.
    pub(super) const fn place(mechanism: Option<Self>) -> Option<usize> {
        match mechanism {
            None => Some(0),
            Some(Self::Ptrace | Self::CgroupFreezer) => Some(1),
            Some(Self::Signals) => Some(2),
            Some(Self::Seccomp) => Some(3),
            Some(Self::Preload) => None,
        }
    }
}

impl Reason {
    pub(super) const fn from_claim(value: u32) -> Self {
        match value {
            1 => Self::Attached,
            2 => Self::Descendant,
            3 => Self::NoLibrary,
            4 => Self::Confined,
            5 => Self::RanAhead,
            6 => Self::Traced,
            7 => Self::Forbidden,
            8 => Self::Foreground,
            9 => Self::Hidden,
            10 => Self::Memory,
            11 => Self::Paused,
            12 => Self::PerChild,
            _ => Self::None,
        }
    }
}
