//! Blocks that are refused.

use core::fmt;

/// Why a block is not a class of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// Shorter than a class.
    Truncated,
    /// Something else.
    NotAClass,
    /// The block is of another version of DiscNice.
    OtherVersion(u32),
    /// Another class that got the same address by chance.
    OtherClass,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("shorter than a class"),
            Self::NotAClass => f.write_str("not a class"),
            Self::OtherVersion(version) => write!(f, "made by layout version {version}"),
            Self::OtherClass => f.write_str("another class"),
        }
    }
}
