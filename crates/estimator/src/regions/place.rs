//! The place of a file in the table, and the keys of its leaves.

/// Bits of a leaf's key: valid, file (13 bits), generation (14 bits), position (36 bits).
const VALID: u64 = 1 << 63;
pub(super) const FILE_SHIFT: u32 = 50;
const GENERATION_SHIFT: u32 = 36;
const GENERATION_MASK: u64 = (1 << 14) - 1;
pub(super) const CHUNK_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

/// A file's place in the table, in one of its generations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) generation: u64,
}

impl Place {
    pub(super) const fn leaf_key(self, chunk: u64) -> u64 {
        let generation = (self.generation & GENERATION_MASK) << GENERATION_SHIFT;
        VALID | self.index << FILE_SHIFT | generation | chunk
    }
}
