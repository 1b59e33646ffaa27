//! Selects the estimator and its parts.

/// Source of a charge: the kernel's account, the prediction, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Estimator {
    /// The kernel's account alone.
    #[default]
    Account = 0,
    /// The prediction alone, as in the paper.
    Predict = 1,
    /// The kernel's account where it speaks, the prediction where it is silent.
    Auto = 2,
}

impl Estimator {
    /// All, with the names that the command line uses.
    pub const ALL: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("predict", Self::Predict), ("account", Self::Account)];

    /// The name that the command line uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Predict => "predict",
            Self::Account => "account",
        }
    }

    pub(crate) const fn from_claim(claim: u32) -> Self {
        match claim {
            1 => Self::Predict,
            2 => Self::Auto,
            _ => Self::Account,
        }
    }
}

//= discnice/4.1-submodules
/// The parts that are switched on (DiscNice, table 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modules {
    /// Off: nothing is taken to be in the cache.
    pub cache_detector: bool,
    /// Off: a read costs the bytes that it asks for, and read-ahead is the kernel's.
    pub read_size: bool,
    /// Off: a write costs the bytes that it writes, whatever happened to them before and after.
    pub write_size: bool,
}

impl Modules {
    /// The paper's "all-on".
    pub const ALL_ON: Self = Self { cache_detector: true, read_size: true, write_size: true };
    /// The paper's "all-off": the control of file I/O.
    pub const ALL_OFF: Self = Self { cache_detector: false, read_size: false, write_size: false };

    /// One bit for each that is off, so that a fresh block has all of them.
    pub(crate) const fn to_bits(self) -> u32 {
        !self.cache_detector as u32 | (!self.read_size as u32) << 1 | (!self.write_size as u32) << 2
    }

    //= discnice/6.2-configurations
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self { cache_detector: bits & 1 == 0, read_size: bits & 2 == 0, write_size: bits & 4 == 0 }
    }
}
