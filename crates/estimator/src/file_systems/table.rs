//! The file systems of a class, by their device numbers.

use super::{Compared, FileSystem, R};

/// File systems that a class tracks separately; the last slot stands for all others.
pub const FILE_SYSTEMS: usize = 32;

/// All of a class's.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FileSystems {
    slots: [FileSystem; FILE_SYSTEMS],
}

/// The slot that stands for whatever has none of its own.
pub const OTHERS: usize = FILE_SYSTEMS - 1;

impl FileSystems {
    /// The slot of the file system with this `st_dev`, taken if need be.
    #[must_use]
    pub fn slot(&self, device: u64) -> usize {
        let wanted = device.wrapping_add(1);
        let first = device as usize % OTHERS;
        for step in 0..OTHERS {
            let index = (first + step) % OTHERS;
            let Some(slot) = self.slots.get(index) else { break };
            let found = match slot.device.load(R) {
                0 => {
                    slot.device.compare_exchange(0, wanted, R, R).map_or_else(|now| now, |_| wanted)
                }
                taken => taken,
            };
            if found == wanted {
                return index;
            }
        }
        OTHERS
    }

    /// The file system in a slot.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<&FileSystem> {
        self.slots.get(slot)
    }

    /// All that are in use.
    pub fn iter(&self) -> impl Iterator<Item = &FileSystem> {
        self.slots
            .iter()
            .filter(|slot| slot.device().is_some() || slot.total() != Compared::default())
    }
}
