//! What a refresh has done.

use discnice_units::Bytes;

use super::gain::Survey;

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshReport {
    /// Files rewritten.
    pub files: u64,
    /// What they take on the disk.
    pub bytes: Bytes,
    /// How the files lay; `None` where the file system does not tell.
    pub before: Option<Survey>,
    /// How they lie now; after a dry run, the best that may be hoped for.
    pub after: Option<Survey>,
    /// An earlier refresh had been interrupted and was cleared up.
    pub recovered: bool,
    /// Members that are left as they were, and why, a line each.
    pub left: Vec<String>,
    /// What the user should look at, and why, a line each: names beside the directory, an order that does not fit.
    pub notes: Vec<String>,
    /// Under one of these names is something that another program changed meanwhile.
    pub kept: bool,
    /// How the copies lay that were thrown away, as the originals lie better.
    pub worse: Option<Survey>,
}

/// What interrupted refreshes had left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// There was something.
    pub recovered: bool,
    /// Names beside the directory under which is something that another program changed, a line each.
    pub kept: Vec<String>,
}
