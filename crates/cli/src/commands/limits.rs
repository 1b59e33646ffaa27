//! The limits of a class as options, shared by every subcommand that sets them.

use std::num::NonZeroU64;

use clap::Args;
use discnice_policy::{Limits, Resource};
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
    disk_iops: Option<Rate>,
    /// Calls on names and inodes a second: open, create, unlink, rename, stat and the like
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count)]
    meta_ops: Option<Rate>,
    /// Network traffic, both ways together
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    net: Option<Rate>,
    /// Network traffic of sending
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    net_up: Option<Rate>,
    /// Network traffic of receiving
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    net_down: Option<Rate>,
    /// Whether traffic within this machine counts as network traffic
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no)]
    net_loopback: Option<bool>,
}

/// A number of operations a second, or `unlimited`.
fn count(text: &str) -> Result<Rate, &'static str> {
    if text == "unlimited" {
        return Ok(Rate::UNLIMITED);
    }
    let number = text.parse::<NonZeroU64>().ok().filter(|number| number.get() < 1 << 63);
    number
        .map(|number| Rate::per_second(number.get()))
        .ok_or("give a whole number from 1 on, or `unlimited`")
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no"),
    }
}

impl LimitArgs {
    /// The threshold that was given for a resource.
    const fn given(&self, resource: Resource) -> Option<Rate> {
        match resource {
            Resource::Total => self.disk,
            Resource::Read => self.disk_read,
            Resource::Write => self.disk_write,
            Resource::Operations => self.disk_iops,
            Resource::Metadata => self.meta_ops,
            Resource::Net => self.net,
            Resource::NetUp => self.net_up,
            Resource::NetDown => self.net_down,
        }
    }

    /// Whether no limit was given at all.
    pub fn is_empty(&self) -> bool {
        Resource::ALL.into_iter().all(|one| self.given(one).is_none())
            && self.net_loopback.is_none()
    }

    /// These limits on top of what held before.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn over(&self, before: Limits) -> anyhow::Result<Limits> {
        let loopback = self.net_loopback.unwrap_or(before.loopback());
        let limits =
            Resource::ALL.into_iter().fold(before.with_loopback(loopback), |limits, one| {
                limits.with(one, self.given(one).unwrap_or(limits.rate(one)))
            });
        limits.check()?;
        Ok(limits)
    }
}
