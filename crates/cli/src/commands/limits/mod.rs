//! The limits of a class as options, shared by every subcommand that sets them.

mod from_toml;
mod over;
mod value;

use clap::Args;
use discnice_ledger::policy::{Limits, Resource, Resources, When};
use discnice_units::{Bytes, Nanos};
use serde::Deserialize;

use super::rate::{Given, GivenLeast};
pub use value::{Cache, Shared};
use value::{
    Ceiling, PolicyArg, SleepBound, Total, count, longest_sleep, policy, shortest_sleep, weight,
    when, yes_or_no,
};

const DISK: &str = "Disk";
const NETWORK: &str = "Network";
const MEMORY: &str = "Memory and processor";
const WHEN: &str = "When";

/// Limits of a class. Sizes: B, K, M, G, T count in 1024s, kB, MB, GB, TB in 1000s.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a section with a name, such as [class.NAME] and below it disk = \"5M\"")]
pub struct LimitArgs {
    /// Disk traffic, reads and writes together, for example 5M (MiB/s), 5MB/s or 10% of what `calibrate` measured;
    /// or `unlimited`
    #[arg(short = 'd', long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    disk: Option<Given>,
    /// Disk traffic of reads
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    disk_read: Option<Given>,
    /// Disk traffic of writes
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    disk_write: Option<Given>,
    /// Disk operations per second; one operation moves at most 512 KiB
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::count")]
    disk_iops: Option<Given>,
    /// Calls on names and inodes per second: open, create, unlink, rename, stat and the like
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::count")]
    meta_ops: Option<Given>,
    /// Total bytes that may be moved, reads and writes together. Once they are used up, all further disk traffic waits
    /// for `class set NAME --disk-total` with an addition (+5G), a new total or `unlimited`
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::parsed")]
    disk_total: Option<Total>,
    /// Network traffic, sent and received together
    ///
    /// For static and Go programs, which cannot load the library, and for attached processes, only TCP is limited. If a
    /// network limit cannot be enforced at all, `run` says so.
    #[arg(short = 'n', long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    net: Option<Given>,
    /// Network traffic sent
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    net_up: Option<Given>,
    /// Network traffic received
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "from_toml::parsed")]
    net_down: Option<Given>,
    /// Whether traffic within this machine counts as network traffic
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = NETWORK, hide_short_help = true)]
    net_loopback: Option<bool>,
    /// Whether a job without a network limit shares the network as any program does, or gives way to others, including
    /// other machines behind the same uplink [default: share; for jobs without a limit, yield]
    #[arg(long, value_enum, value_name = "share|yield", help_heading = NETWORK, hide_short_help = true)]
    uplink: Option<Shared>,
    /// Enforce limits always, or only while others use the disk or network
    #[arg(long, value_name = "always|busy", value_parser = when, help_heading = WHEN)]
    #[serde(deserialize_with = "from_toml::when")]
    when: Option<When>,
    /// Least disk traffic while giving way to others; or `none`
    ///
    /// This rate is kept however busy the others are. Give a rate, such as 1M, or 10% of what `calibrate` measured.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = WHEN)]
    #[serde(deserialize_with = "from_toml::parsed")]
    at_least: Option<GivenLeast>,
    /// Relative share when several classes give way at once, from 1 to 10000. Together they get what one alone would get,
    /// divided in proportion to these numbers [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = weight, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::weight")]
    weight: Option<u32>,
    /// How calls are delayed: `window` spreads them evenly over the rate window; `sleep` lets through at once what a
    /// second allows, and then sleeps until the average is back at the limit; `program` is like `window`, but the program
    /// that config.toml names for the class sets the rates [default: window]
    #[arg(long, value_name = "window|sleep|program", value_parser = policy, help_heading = WHEN, hide_short_help = true)]
    policy: Option<PolicyArg>,
    /// Time over which the limits hold, from 100ms to 1min (with the policy `sleep`, to 4900ms) [default: 5s; for `sleep`,
    /// 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::parsed")]
    window: Option<Nanos>,
    /// Put off waits that are shorter than this, until they add up to it: 100us to 100ms, or `usual`, which is 1ms
    #[arg(long, value_name = "TIME", value_parser = shortest_sleep, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::shortest_sleep")]
    shortest_sleep: Option<SleepBound>,
    /// Cut large reads and writes into pieces, each of which waits at most this long: 5ms to 500ms, or `usual`, which
    /// depends on the rate and is 40ms for most rates
    #[arg(long, value_name = "TIME", value_parser = longest_sleep, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::longest_sleep")]
    longest_sleep: Option<SleepBound>,
    /// Give each child of the command the full limits, in a class of its own, instead of one budget for all; limits
    /// disk and network traffic only, and from outside
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = WHEN, hide_short_help = true)]
    per_child: Option<bool>,
    /// Resident memory at which a job that was paused for `--memory-high` resumes [default: half of the high threshold; for
    /// guests, a twentieth of the machine's memory]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = MEMORY, hide_short_help = true)]
    #[serde(deserialize_with = "from_toml::parsed")]
    memory_low: Option<Bytes>,
    /// Resident memory above which the job is paused while others wait for memory; or `unlimited` [default: twice the
    /// low threshold; for guests, a tenth of the machine's memory]
    ///
    /// The kernel then reclaims the job's pages first.
    #[arg(short = 'm', long, value_name = "SIZE", allow_hyphen_values = true, help_heading = MEMORY)]
    #[serde(deserialize_with = "from_toml::parsed")]
    memory_high: Option<Ceiling>,
    /// Give way in processor time and memory, too: idle scheduling class, idle disk priority
    #[arg(short = 'g', long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = MEMORY)]
    guest: Option<bool>,
    /// What happens to the page cache: `keep` caches what the job reads; `protect` drops it again, except for files that
    /// the job soon reopens, and so protects what was cached before [default: keep; for jobs without a limit, protect]
    #[arg(long, value_enum, value_name = "keep|protect", help_heading = MEMORY, hide_short_help = true)]
    cache: Option<Cache>,
    /// Only in the configuration: the address of a budget that the class shares with those of other machines.
    #[arg(skip)]
    fleet: Option<String>,
    /// Only in the configuration: what `discnice enter` says to users besides the limits.
    #[arg(skip)]
    message: Option<String>,
}

impl LimitArgs {
    /// The threshold that was given for a resource.
    const fn given(&self, resource: Resource) -> Option<Given> {
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

    /// The address of a budget that the class shares with those of other machines.
    pub fn fleet(&self) -> Option<&str> {
        self.fleet.as_deref()
    }

    /// What users of the class are told.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Whether nothing was given at all.
    pub fn is_empty(&self) -> bool {
        let settings = [self.net_loopback, self.guest, self.per_child].iter().all(Option::is_none);
        !self.has_threshold()
            && settings
            && self.cache.is_none()
            && self.uplink.is_none()
            && self.when.is_none()
            && self.weight.is_none()
            && self.disk_total.is_none()
            && self.at_least.is_none()
            && self.policy.is_none()
            && self.window.is_none()
            && self.shortest_sleep.is_none()
            && self.longest_sleep.is_none()
    }

    /// Whether a least rate was given.
    pub fn has_least(&self) -> bool {
        self.at_least.is_some()
    }

    /// A default that was made without knowledge of the least rate, with room for it.
    ///
    /// # Errors
    /// It is a part of what was never measured.
    pub fn with_room(&self, default: Limits) -> anyhow::Result<Limits> {
        let least = self.at_least.map(GivenLeast::resolve).transpose()?.flatten();
        let disk = default.rate(Resource::Total);
        Ok(default.with(Resource::Total, least.map_or(disk, |least| disk.max(least))))
    }

    /// Whether a new total was given, which is not on top of the one before.
    pub fn has_new_total(&self) -> bool {
        matches!(self.disk_total, Some(Total::Most(_)))
    }

    /// Whether a rate of all disk traffic was given, `unlimited` included.
    pub fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether any threshold was given, `unlimited` included.
    pub fn has_threshold(&self) -> bool {
        let memory = self.memory_low.is_some() || self.memory_high.is_some();
        memory || Resource::ALL.into_iter().any(|one| self.given(one).is_some())
    }

    /// The user's own policy: a program, and its arguments.
    pub fn program(&self) -> Option<&[String]> {
        match &self.policy {
            Some(PolicyArg::Program(words)) => Some(words),
            _ => None,
        }
    }

    /// Returns the first resource that was given a rate and is none of these.
    pub fn beyond(&self, resources: Resources) -> Option<Resource> {
        self.all_given().map(|(one, _)| one).find(|one| !resources.contains(*one))
    }

    fn all_given(&self) -> impl Iterator<Item = (Resource, Given)> {
        Resource::ALL.into_iter().filter_map(|one| Some((one, self.given(one)?)))
    }
}
