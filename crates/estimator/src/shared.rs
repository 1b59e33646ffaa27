//! What all processes of a class share.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::file_systems::{CallKind, Compared, FileSystem, FileSystems, OTHERS};
use crate::fuse_reads::{Behind, InodeTable};
use crate::modules::{Estimator, Modules};
use crate::regions::UpdateRegions;

const R: Ordering = Ordering::Relaxed;

//= discnice/5.2-process
/// The estimator's part of a class; all zeroes is a fresh one.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Estimation {
    estimator: AtomicU32,
    /// See `Modules::to_bits`.
    off: AtomicU32,
    file_systems: FileSystems,
    regions: UpdateRegions,
    behind: Behind,
}

/// Sums over everything that a class did, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What the disk was predicted to do.
    pub predicted: u64,
    /// What the kernel charged. On file systems where it charges nothing, nothing.
    pub account: u64,
}

impl Estimation {
    /// Returns the source that charges follow.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        Estimator::from_claim(self.estimator.load(R))
    }

    /// The parts that are switched on.
    #[must_use]
    pub fn modules(&self) -> Modules {
        Modules::from_bits(self.off.load(R))
    }

    /// Chooses both.
    pub fn choose(&self, estimator: Estimator, modules: Modules) {
        self.estimator.store(estimator as u32, R);
        self.off.store(modules.to_bits(), R);
    }

    /// The file systems that the class has used.
    #[must_use]
    pub fn file_systems(&self) -> &FileSystems {
        &self.file_systems
    }

    /// A file system by its slot, or the one that stands for all others.
    #[must_use]
    pub fn file_system(&self, slot: usize) -> Option<&FileSystem> {
        self.file_systems.get(slot).or_else(|| self.file_systems.get(OTHERS))
    }

    /// What is dirty.
    #[must_use]
    pub fn regions(&self) -> &UpdateRegions {
        &self.regions
    }

    /// What lies behind file systems that a daemon serves.
    #[must_use]
    pub fn behind(&self) -> &Behind {
        &self.behind
    }

    /// Returns true if inodes and directories read by daemons are tracked: a daemon reads from a
    /// file system with a known inode table.
    #[must_use]
    pub fn follows_daemons(&self) -> bool {
        let known = |fs: &FileSystem| fs.inode_table() != InodeTable::default();
        self.estimator() != Estimator::Account && self.file_systems.get(OTHERS).is_some_and(known)
    }

    /// Prediction and account, of all file systems.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = self.file_systems.iter().map(FileSystem::total);
        let all = sum.fold(Compared::default(), Compared::plus);
        Totals { predicted: all.net(), account: all.account }
    }

    /// What the files that were made have cost the disk beside what is predicted and beside what is charged,
    /// on all file systems: see [`FileSystem::overhead`].
    #[must_use]
    pub fn overhead(&self) -> (u64, u64) {
        let all = self.file_systems.iter().map(FileSystem::overhead);
        all.fold((0, 0), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
    }

    /// Prediction and account of one kind of call.
    #[must_use]
    pub fn of_kind(&self, kind: CallKind) -> Compared {
        let sum = self.file_systems.iter().map(|fs| fs.compared(kind));
        sum.fold(Compared::default(), Compared::plus)
    }
}
