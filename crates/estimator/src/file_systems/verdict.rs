//! What is compared on a file system, and what that says of the kernel's account there.

/// An account below 1/8 of the prediction is silent. On a file system that keeps an account, no
/// prediction is off by that much.
pub(super) const SILENT: u64 = 8;

/// What a call on names or inodes does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks them up or lists them.
    Looks,
    /// Creates, changes or removes them, or closes a file. On FUSE the call waits for the daemon,
    /// which has mostly read them already when they were looked up.
    Changes,
    /// Looks up what a daemon serves, where inodes and directories are counted one by one
    /// ([`crate::fuse_reads::Behind::looked_at`]).
    Counted,
}

/// Kind of call that disk I/O is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CallKind {
    /// read(2) and its relatives, with our read-ahead.
    Read,
    /// write(2) and its relatives.
    Write,
    /// copy_file_range(2), sendfile(2).
    Copy,
    /// Directories, inodes, names.
    Metadata,
    /// Whatever else was found: page faults, loading programs.
    Other,
}

impl CallKind {
    /// All, with the names that machine output uses; stable.
    pub const ALL: [(&'static str, Self); 5] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("copy", Self::Copy),
        ("metadata", Self::Metadata),
        ("other", Self::Other),
    ];
}

/// What was predicted and what the kernel charged, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Predicted, before anything was taken back.
    pub predicted: u64,
    /// Charged by the kernel.
    pub account: u64,
    /// Part of the prediction that was taken back, because the data was deleted before it was
    /// written.
    pub credited: u64,
}

impl Compared {
    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            predicted: self.predicted.saturating_add(other.predicted),
            account: self.account.saturating_add(other.account),
            credited: self.credited.saturating_add(other.credited),
        }
    }

    /// What the disk is predicted to have done.
    #[must_use]
    pub const fn net(self) -> u64 {
        self.predicted.saturating_sub(self.credited)
    }
}

/// Says if the kernel's account on a file system can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// Too little has been seen to tell.
    Undecided = 0,
    /// The account counts what the disk does.
    Accounted = 1,
    /// The account stays empty, as on FUSE and network file systems; only the prediction is left.
    Silent = 2,
}

impl Verdict {
    /// Returns the verdict after reads that missed the cache, given the share of their bytes that
    /// was charged.
    #[must_use]
    pub fn of_reads(charged: f64) -> Self {
        if charged * (SILENT as f64) < 1.0 { Self::Silent } else { Self::Accounted }
    }

    /// The name that machine output uses; stable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Accounted => "accounted",
            Self::Silent => "silent",
        }
    }
}
