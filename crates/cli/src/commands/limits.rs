//! The limits of a class as options, shared by every subcommand that sets them.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, ValueEnum};
use discnice_policy::choice::{LONGEST_SLEEPS, SHORTEST_SLEEPS};
use discnice_policy::limits::WEIGHT_MAX;
use discnice_policy::{Choice, Limits, Memory, Pace, Resource, Resources, When};
use discnice_units::{Bytes, DurationError, Nanos, ParseError, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::rate::{Given, GivenLeast};

const DISK: &str = "Disk";
const NETWORK: &str = "Network";
const MEMORY: &str = "Memory and processor";
const WHEN: &str = "When";
/// Less needs a unit, as `5` usually means `5G`.
const WITHOUT_UNIT: u64 = 4096;

/// Limits of a class. Sizes: B, K, M, G, T count in 1024s, kB, MB, GB, TB in 1000s.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitArgs {
    /// Disk traffic, reads and writes together, for example 5M (MiB/s), 5MB/s or 10% of what `calibrate` measured;
    /// or `unlimited`
    #[arg(short = 'd', long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "toml_rate")]
    disk: Option<Given>,
    /// Disk traffic of reads
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "toml_rate")]
    disk_read: Option<Given>,
    /// Disk traffic of writes
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = DISK)]
    #[serde(deserialize_with = "toml_rate")]
    disk_write: Option<Given>,
    /// Disk operations per second; one moves at most 512 KiB
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "toml_count")]
    disk_iops: Option<Given>,
    /// Calls on names and inodes per second: open, create, unlink, rename, stat and the like
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "toml_count")]
    meta_ops: Option<Given>,
    /// Bytes that it may move in total, reads and writes together; once they are used up it is held until it gets more,
    /// by `class set NAME --disk-total +5G`, a new total or `unlimited`
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = DISK, hide_short_help = true)]
    #[serde(deserialize_with = "toml_total")]
    disk_total: Option<Total>,
    /// Network traffic, sent and received together
    #[arg(short = 'n', long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "toml_rate")]
    net: Option<Given>,
    /// Network traffic sent
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "toml_rate")]
    net_up: Option<Given>,
    /// Network traffic received
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = NETWORK)]
    #[serde(deserialize_with = "toml_rate")]
    net_down: Option<Given>,
    /// Whether traffic within this machine counts as network traffic
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = NETWORK, hide_short_help = true)]
    net_loopback: Option<bool>,
    /// What happens on the network without a number: share it as any program does, or yield it to others, those on other
    /// machines behind the same uplink included [default: share; of jobs without a number yield]
    #[arg(long, value_enum, value_name = "share|yield", help_heading = NETWORK, hide_short_help = true)]
    uplink: Option<Shared>,
    /// Hold the limits always, or only while others use its disks or network
    #[arg(long, value_name = "always|busy", value_parser = when, help_heading = WHEN)]
    #[serde(deserialize_with = "toml_when")]
    when: Option<When>,
    /// Disk traffic that it keeps while it gives way to others; or `none`
    ///
    /// However busy the others are. As a rate, such as 1M, or 10% of what `calibrate` measured.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = WHEN)]
    #[serde(deserialize_with = "toml_least")]
    at_least: Option<GivenLeast>,
    /// Its share while several classes that give way are held at once: together they get what one alone would get,
    /// in proportion to these numbers, from 1 to 10000 [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = weight, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "toml_weight")]
    weight: Option<u32>,
    /// How calls are delayed: `window`, the rate window, which is smooth; `sleep`, a sleep of B/R - N, which lets what a
    /// second allows through at once; `program`, the rate window at the rates that are set by the program which
    /// config.toml names for the class [default: window]
    #[arg(long, value_name = "window|sleep|program", value_parser = policy, help_heading = WHEN, hide_short_help = true)]
    policy: Option<PolicyArg>,
    /// Time over which a limit holds, 100ms to 1min; with the policy `sleep` to 4900ms [default: 5s; of `sleep` 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "toml_time")]
    window: Option<Nanos>,
    /// Waits that would be shorter are put off, 100us to 100ms; or `usual`: 1ms
    #[arg(long, value_name = "TIME", value_parser = shortest_sleep, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "toml_shortest_sleep")]
    shortest_sleep: Option<SleepBound>,
    /// Large reads and writes are cut into pieces that cause waits of at most this time, 5ms to 500ms; or `usual`, which
    /// depends on the rate: 40ms for most
    #[arg(long, value_name = "TIME", value_parser = longest_sleep, help_heading = WHEN, hide_short_help = true)]
    #[serde(deserialize_with = "toml_longest_sleep")]
    longest_sleep: Option<SleepBound>,
    /// Give each child of the command the limits for itself, in a class of its own, instead of one budget for all;
    /// disk traffic only, held from outside
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = WHEN, hide_short_help = true)]
    per_child: Option<bool>,
    /// Resident memory that it keeps while others wait for memory [default: half of the high threshold; of
    /// guests a twentieth of the machine's]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = MEMORY, hide_short_help = true)]
    #[serde(deserialize_with = "toml_size")]
    memory_low: Option<Bytes>,
    /// Resident memory above which it is paused while others wait for memory, so that its pages are
    /// taken first; or `unlimited` [default: twice the low threshold; of guests a tenth of the machine's]
    #[arg(short = 'm', long, value_name = "SIZE", allow_hyphen_values = true, help_heading = MEMORY)]
    #[serde(deserialize_with = "toml_ceiling")]
    memory_high: Option<Ceiling>,
    /// Give way in processor time and memory too: idle scheduling class, idle disk priority
    #[arg(short = 'g', long, value_name = "yes|no", num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = yes_or_no, help_heading = MEMORY)]
    guest: Option<bool>,
    /// What happens to the page cache: keep what the job reads, or protect what was there before, so that what the
    /// job reads leaves with it; a file that it opens again soon stays [default: keep; of jobs without a number protect]
    #[arg(long, value_enum, value_name = "keep|protect", help_heading = MEMORY, hide_short_help = true)]
    cache: Option<Cache>,
    /// Only in the configuration: the address of a budget that the class shares with those of other machines.
    #[arg(skip)]
    fleet: Option<String>,
    /// Only in the configuration: what `discnice enter` says to users besides the limits.
    #[arg(skip)]
    message: Option<String>,
}

/// What happens to the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// What the job reads stays as long as the kernel likes.
    Keep,
    /// What the job reads leaves with it.
    Protect,
}

impl Cache {
    /// That of a class which protects the page cache, or does not.
    pub fn of(protects: bool) -> Self {
        if protects { Self::Protect } else { Self::Keep }
    }
}

/// What happens on the network without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shared {
    /// The job takes what its connections get.
    Share,
    /// It gives way to others, by the queue that its connections see.
    Yield,
}

impl Shared {
    /// That of a class which gives way, or does not.
    pub fn of(yields: bool) -> Self {
        if yields { Self::Yield } else { Self::Share }
    }
}

/// A policy as it was given.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "OneOrMore")]
enum PolicyArg {
    /// By its name.
    Named(Choice),
    /// The user's own: the path of a program, and its arguments.
    Program(Vec<String>),
}

/// A text or several, as config.toml has them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a text in quotes, or a list of them")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl TryFrom<OneOrMore> for PolicyArg {
    type Error = &'static str;

    fn try_from(given: OneOrMore) -> Result<Self, Self::Error> {
        let words = match given {
            OneOrMore::One(word) => vec![word],
            OneOrMore::More(words) => words,
        };
        let first = words.first().map(String::as_str).unwrap_or_default();
        match Choice::named(first).filter(|_| words.len() == 1) {
            None if first.starts_with('/') => Ok(Self::Program(words)),
            Some(choice) if choice != Choice::Program => Ok(Self::Named(choice)),
            _ => Err("give window, sleep, or a program's path from / on"),
        }
    }
}

/// A bound of sleeps; `None` for the usual one.
#[derive(Debug, Clone, Copy)]
struct SleepBound(Option<Nanos>);

fn sleep_bound(text: &str, (least, most): (Nanos, Nanos)) -> Result<SleepBound, String> {
    if text == "usual" {
        return Ok(SleepBound(None));
    }
    let sleep: Nanos = text.parse().map_err(|error: DurationError| error.to_string())?;
    match (least..=most).contains(&sleep) {
        true => Ok(SleepBound(Some(sleep))),
        false => Err(format!("give {least} to {most}, or usual")),
    }
}

fn shortest_sleep(text: &str) -> Result<SleepBound, String> {
    sleep_bound(text, SHORTEST_SLEEPS)
}

fn longest_sleep(text: &str) -> Result<SleepBound, String> {
    sleep_bound(text, LONGEST_SLEEPS)
}

/// A size, or none.
#[derive(Debug, Clone, Copy)]
struct Ceiling(Option<Bytes>);

impl FromStr for Ceiling {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "unlimited" { Ok(Self(None)) } else { text.parse().map(|size| Self(Some(size))) }
    }
}

/// Bytes in all.
#[derive(Debug, Clone, Copy)]
enum Total {
    /// So many, or no bound.
    Most(Option<Bytes>),
    /// So many more than before.
    More(Bytes),
}

impl FromStr for Total {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |text: &str| match text.parse::<Bytes>() {
            Ok(size)
                if size.get() < WITHOUT_UNIT && text.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Err(format!("{text} what? {text}G is {text} GiB, {text}B bytes"))
            }
            size => size.map_err(|error| error.to_string()),
        };
        match text.strip_prefix('+') {
            _ if text == "unlimited" => Ok(Self::Most(None)),
            Some(more) => size(more).map(Self::More),
            None => size(text).map(|size| Self::Most(Some(size))),
        }
    }
}

impl Total {
    /// On top of what it was before.
    fn over(self, before: Option<Bytes>) -> Option<Bytes> {
        match self {
            Self::Most(most) => most,
            Self::More(more) => {
                let before = before.map_or(0, Bytes::get);
                Some(Bytes::new(before.saturating_add(more.get())))
            }
        }
    }
}

/// A value of the configuration file: a text, or a whole number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(i64),
    Text(String),
}

impl Value {
    fn parse<'de, D: Deserializer<'de>, T, E: Display>(
        from: D,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, D::Error> {
        let text = match Self::deserialize(from) {
            Ok(Self::Number(number)) => number.to_string(),
            Ok(Self::Text(text)) => text,
            Err(_) => return Err(D::Error::custom("give a text in quotes or a whole number")),
        };
        parse(&text).map(Some).map_err(D::Error::custom)
    }
}

fn toml_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Given>, D::Error> {
    Value::parse(from, str::parse::<Given>)
}

fn toml_least<'de, D: Deserializer<'de>>(from: D) -> Result<Option<GivenLeast>, D::Error> {
    Value::parse(from, str::parse::<GivenLeast>)
}

fn toml_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    Value::parse(from, str::parse::<Bytes>)
}

fn toml_ceiling<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Ceiling>, D::Error> {
    Value::parse(from, str::parse::<Ceiling>)
}

fn toml_total<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Total>, D::Error> {
    Value::parse(from, str::parse::<Total>)
}

fn toml_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    Value::parse(from, str::parse::<Nanos>)
}

fn toml_shortest_sleep<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SleepBound>, D::Error> {
    Value::parse(from, shortest_sleep)
}

fn toml_longest_sleep<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SleepBound>, D::Error> {
    Value::parse(from, longest_sleep)
}

fn toml_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Given>, D::Error> {
    Value::parse(from, count)
}

fn toml_when<'de, D: Deserializer<'de>>(from: D) -> Result<Option<When>, D::Error> {
    Value::parse(from, when)
}

fn toml_weight<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Value::parse(from, weight)
}

/// A number of operations a second, or `unlimited`.
fn count(text: &str) -> Result<Given, &'static str> {
    if text == "unlimited" {
        return Ok(Given::Rate(Rate::UNLIMITED));
    }
    let number = text.parse::<NonZeroU64>().ok().filter(|number| number.get() < 1 << 63);
    number
        .map(|number| Given::Rate(Rate::per_second(number.get())))
        .ok_or("give a whole number from 1 on, or `unlimited`")
}

fn when(text: &str) -> Result<When, &'static str> {
    match text {
        "always" => Ok(When::Always),
        "busy" => Ok(When::Busy),
        _ => Err("give always or busy"),
    }
}

fn weight(text: &str) -> Result<u32, &'static str> {
    let number = text.parse().ok().filter(|number| (1..=WEIGHT_MAX).contains(number));
    number.ok_or("give a whole number from 1 to 10000")
}

/// On the command line, where a program's path would be lost with the command.
fn policy(text: &str) -> Result<PolicyArg, &'static str> {
    let named = Choice::named(text).map(PolicyArg::Named);
    named.ok_or("give window, sleep or program; the program itself stands in config.toml")
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

    /// The policy on top of that before; another policy has its own window.
    fn pace(&self, before: Pace) -> Pace {
        let pace = match &self.policy {
            Some(PolicyArg::Named(choice)) if *choice == before.policy => before,
            Some(PolicyArg::Named(choice)) => before.with_policy(*choice).with_window(None),
            Some(PolicyArg::Program(_)) => before.with_policy(Choice::Program).with_window(None),
            None => before,
        };
        let pace = if self.window.is_some() { pace.with_window(self.window) } else { pace };
        let pace =
            self.shortest_sleep.map_or(pace, |SleepBound(sleep)| pace.with_shortest_sleep(sleep));
        self.longest_sleep.map_or(pace, |SleepBound(sleep)| pace.with_longest_sleep(sleep))
    }

    /// The thresholds of memory on top of those before.
    fn memory(&self, before: Memory) -> Memory {
        let memory = self.memory_low.map_or(before, |low| before.with_low(low));
        match self.memory_high {
            Some(Ceiling(high)) => memory.with_high(high),
            None => memory,
        }
    }

    /// These limits on top of what held before.
    ///
    /// # Errors
    /// The limits contradict each other, or are parts of what was never measured.
    pub fn over(&self, before: Limits) -> anyhow::Result<Limits> {
        let limits = self.laid_over(before)?;
        limits.check()?;
        Ok(limits)
    }

    /// These limits on top of what held before; a part that is then allowed more than the whole is allowed as much.
    ///
    /// # Errors
    /// They are parts of what was never measured.
    pub fn fitted_over(&self, before: Limits) -> anyhow::Result<Limits> {
        Ok(fitted(self.laid_over(before)?))
    }

    fn laid_over(&self, before: Limits) -> anyhow::Result<Limits> {
        let settings = match self.at_least {
            Some(least) => self.settings_over(before).with_at_least(least.resolve()?),
            None => self.settings_over(before),
        };
        self.all_given().try_fold(settings, |limits, (one, given)| {
            Ok(limits.with(one, given.resolve(one).with_context(|| one.option())?))
        })
    }

    /// The limits where they are tighter than what is given here, and this elsewhere.
    ///
    /// # Errors
    /// What is given is a part of what was never measured.
    pub fn bound(&self, limits: Limits) -> anyhow::Result<Limits> {
        let mut bound = limits;
        for (one, given) in self.all_given() {
            let most = given.resolve(one).with_context(|| one.option())?;
            bound = bound.with(one, bound.rate(one).min(most));
        }
        if self.when == Some(When::Always) {
            bound = bound.with_when(When::Always);
        }
        if let Some(most) = self.weight {
            bound = bound.with_weight(bound.weight().min(most));
        }
        if let Some(Total::Most(Some(most))) = self.disk_total {
            let total = bound.disk_total().map_or(most, |total| total.min(most));
            bound = bound.with_disk_total(Some(total));
        }
        if let Some(most) = self.at_least.map(GivenLeast::resolve).transpose()?.flatten() {
            bound = bound.with_at_least(bound.at_least().map(|least| least.min(most)));
        }
        if let Some(Ceiling(Some(most))) = self.memory_high {
            let high = bound.memory().high().map_or(most, |high| high.min(most));
            bound = bound.with_memory(bound.memory().with_high(Some(high)));
        }
        let either = |wanted: Option<bool>, has: bool| has || wanted == Some(true);
        let protects = self.cache.map(|cache| cache == Cache::Protect);
        let yields = self.uplink.map(|shared| shared == Shared::Yield);
        Ok(fitted(
            bound
                .with_guest(either(self.guest, bound.guest()))
                .with_loopback(either(self.net_loopback, bound.loopback()))
                .with_cache_protected(either(protects, bound.protects_cache()))
                .with_uplink_yielded(either(yields, bound.yields_uplink())),
        ))
    }

    /// Checks what can be checked without a measured disk.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn check(&self) -> anyhow::Result<()> {
        let plain = self.all_given().filter_map(|(one, given)| Some((one, given.plain()?)));
        let least = self.at_least.and_then(GivenLeast::plain);
        let settings = self.settings_over(Limits::UNLIMITED).with_at_least(least);
        let limits = plain.fold(settings, |limits, (one, rate)| limits.with(one, rate));
        Ok(limits.check()?)
    }

    /// Returns true if every rate that was given is of these resources.
    pub fn are_of(&self, resources: Resources) -> bool {
        self.all_given().all(|(one, _)| resources.contains(one))
    }

    fn all_given(&self) -> impl Iterator<Item = (Resource, Given)> {
        Resource::ALL.into_iter().filter_map(|one| Some((one, self.given(one)?)))
    }

    /// All but the rates.
    fn settings_over(&self, before: Limits) -> Limits {
        before
            .with_loopback(self.net_loopback.unwrap_or(before.loopback()))
            .with_when(self.when.unwrap_or(before.when()))
            .with_weight(self.weight.unwrap_or(before.weight()))
            .with_guest(self.guest.unwrap_or(before.guest()))
            .with_cache_protected(
                self.cache.map_or(before.protects_cache(), |cache| cache == Cache::Protect),
            )
            .with_uplink_yielded(
                self.uplink.map_or(before.yields_uplink(), |shared| shared == Shared::Yield),
            )
            .with_per_child(self.per_child.unwrap_or(before.per_child()))
            .with_memory(self.memory(before.memory()))
            .with_disk_total(
                self.disk_total
                    .map_or(before.disk_total(), |total| total.over(before.disk_total())),
            )
            .with_pace(self.pace(before.pace()))
    }
}

/// The limits, with no part allowed more than its whole, no least rate above a limit, and no low threshold of memory above the high one.
fn fitted(limits: Limits) -> Limits {
    let mut fitted = limits;
    for part in Resource::ALL {
        if let Some(whole) = part.whole().filter(|_| !fitted.rate(part).is_unlimited()) {
            fitted = fitted.with(part, fitted.rate(part).min(fitted.rate(whole)));
        }
    }
    let most = [Resource::Total, Resource::Read, Resource::Write].map(|one| fitted.rate(one));
    let most = most.into_iter().min().unwrap_or(Rate::UNLIMITED);
    fitted = fitted.with_at_least(fitted.at_least().map(|least| least.min(most)));
    let memory = fitted.memory();
    match memory.high().filter(|_| memory.contradicts_itself()) {
        Some(high) => fitted.with_memory(memory.with_low(high)),
        None => fitted,
    }
}
