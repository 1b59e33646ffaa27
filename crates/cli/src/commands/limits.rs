//! The limits of a class as options, shared by every subcommand that sets them.

use std::num::NonZeroU64;

use clap::Args;
use discnice_policy::Limits;
use discnice_units::Rate;

/// Limits of a class. Sizes: B, K, M, G, T count in 1024s, kB, MB, GB, TB in 1000s.
#[derive(Debug, Clone, Default, Args)]
pub struct LimitArgs {
    /// Disk traffic, both ways together, for example 5M; or `unlimited`
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    disk: Option<Rate>,
    /// Disk traffic of reading
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    disk_read: Option<Rate>,
    /// Disk traffic of writing
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    disk_write: Option<Rate>,
    /// Disk operations a second; one moves at most 512 KiB
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count)]
    disk_iops: Option<u64>,
}

fn count(text: &str) -> Result<u64, &'static str> {
    text.parse::<NonZeroU64>().map(NonZeroU64::get).map_err(|_| "give a whole number from 1 on")
}

impl LimitArgs {
    /// Whether no limit was given at all.
    pub fn is_empty(&self) -> bool {
        self.disk.or(self.disk_read).or(self.disk_write).is_none() && self.disk_iops.is_none()
    }

    /// These limits on top of what held before.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn over(&self, before: Limits) -> anyhow::Result<Limits> {
        let limits = Limits {
            total: self.disk.unwrap_or(before.total),
            read: self.disk_read.unwrap_or(before.read),
            write: self.disk_write.unwrap_or(before.write),
            operations: self.disk_iops.map_or(before.operations, Rate::per_second),
        };
        limits.check()?;
        Ok(limits)
    }
}
