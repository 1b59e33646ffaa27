//! Identifies a file by one number made from its device and inode.

//= discnice/5.2-inode
/// Names a file: device and inode number, mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKey(pub(super) u64);

impl FileKey {
    /// The key of the file with this `st_dev` and `st_ino`.
    #[must_use]
    pub const fn new(device: u64, inode: u64) -> Self {
        let mixed = mix(inode ^ mix(device ^ 0x5bd1_e995));
        Self(if mixed == 0 { 1 } else { mixed })
    }

    /// Returns the key as a number, never zero.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The key that [`FileKey::get`] gave; `None` for zero.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }
}

/// The finaliser of MurmurHash3: every bit of the result depends on every bit given.
pub(super) const fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
