//! What leads from a class's name to its block: a file of this name in the private directory.
//!
//! It also keeps the class's limits, so that a program of another version, which cannot use the block,
//! makes one that has them.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

use discnice_ledger::policy::limits::WEIGHT;
use discnice_ledger::policy::{Choice, Limits, Memory, Pace, Resource, When};
use discnice_paths::{Private, name_in_space};
use discnice_sys::block::BlockId;
use discnice_units::{Bytes, Nanos, Rate};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::store;

/// The directory of entries.
const DIRECTORY: &str = "classes";
/// What the names of files begin with that are written but not yet in place. No class's name does.
const DRAFT: &str = ".draft-";
/// A longer file is no entry.
const LONGEST: u64 = 1 << 16;
/// How often the lock is tried, and how long apart.
const TRIES: u32 = 200;
const APART: Duration = Duration::from_millis(5);

/// Block of a class, and what the class allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its block.
    pub block: BlockId,
    /// Also in the block: tells it from a later one of its id.
    pub nonce: u64,
    /// Its limits.
    pub limits: Limits,
}

/// An entry as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    block: String,
    nonce: String,
    /// Since when the machine runs: of another time, nothing is left.
    boot: String,
    #[serde(default)]
    limits: Settings,
}

/// Limits as they are written. What another version does not know it leaves out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
struct Settings {
    /// Units per second by the resource's name; what is missing has no limit.
    rates: BTreeMap<String, u64>,
    net_loopback: bool,
    busy: bool,
    weight: u32,
    guest: bool,
    protects_cache: bool,
    yields_uplink: bool,
    per_child: bool,
    memory_low: Option<u64>,
    memory_high: Option<u64>,
    memory_unlimited: bool,
    disk_total: Option<u64>,
    at_least: Option<u64>,
    policy: String,
    window_ms: Option<u64>,
    shortest_sleep_us: Option<u64>,
    longest_sleep_ms: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&Limits::UNLIMITED)
    }
}

impl From<&Limits> for Settings {
    fn from(limits: &Limits) -> Self {
        let limited = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
        let memory = limits.memory();
        Self {
            rates: limited.map(|one| (one.name().to_owned(), limits.rate(one).get())).collect(),
            net_loopback: limits.loopback(),
            busy: limits.when() == When::Busy,
            weight: limits.weight(),
            guest: limits.guest(),
            protects_cache: limits.protects_cache(),
            yields_uplink: limits.yields_uplink(),
            per_child: limits.per_child(),
            memory_low: memory.low().map(Bytes::get),
            memory_high: memory.high().map(Bytes::get),
            memory_unlimited: memory.is_unlimited(),
            disk_total: limits.disk_total().map(Bytes::get),
            at_least: limits.at_least().map(Rate::get),
            policy: limits.pace().policy.name().to_owned(),
            window_ms: limits.pace().given_window().map(|window| window.0 / 1_000_000),
            shortest_sleep_us: limits.pace().given_shortest_sleep().map(|sleep| sleep.0 / 1000),
            longest_sleep_ms: limits.pace().given_longest_sleep().map(|sleep| sleep.0 / 1_000_000),
        }
    }
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        let rate = |one: Resource| settings.rates.get(one.name()).filter(|rate| **rate > 0);
        let memory = settings
            .memory_low
            .map_or(Memory::DEFAULT, |low| Memory::DEFAULT.with_low(Bytes::new(low)));
        let memory = match (settings.memory_unlimited, settings.memory_high) {
            (true, _) => memory.with_high(None),
            (false, Some(high)) => memory.with_high(Some(Bytes::new(high))),
            (false, None) => memory,
        };
        let pace = Pace::DEFAULT
            .with_policy(Choice::named(&settings.policy).unwrap_or_default())
            .with_window(settings.window_ms.map(Nanos::from_millis))
            .with_shortest_sleep(
                settings.shortest_sleep_us.map(|micros| Nanos(micros.saturating_mul(1000))),
            )
            .with_longest_sleep(settings.longest_sleep_ms.map(Nanos::from_millis));
        let rest = Self::UNLIMITED
            .with_pace(pace)
            .with_loopback(settings.net_loopback)
            .with_when(if settings.busy { When::Busy } else { When::Always })
            .with_weight(if settings.weight == 0 { WEIGHT } else { settings.weight })
            .with_guest(settings.guest)
            .with_cache_protected(settings.protects_cache)
            .with_uplink_yielded(settings.yields_uplink)
            .with_per_child(settings.per_child)
            .with_memory(memory)
            .with_disk_total(settings.disk_total.filter(|most| *most > 0).map(Bytes::new))
            .with_at_least(settings.at_least.filter(|least| *least > 0).map(Rate::per_second));
        Resource::ALL.into_iter().fold(rest, |limits, one| {
            limits.with(one, rate(one).map_or(Rate::UNLIMITED, |rate| Rate::per_second(*rate)))
        })
    }
}

impl Entry {
    /// Reads an entry; `None` for what is none, and for one from before the machine was started.
    #[must_use]
    pub fn parse(text: &[u8], boot: &str) -> Option<Self> {
        let written: Written = serde_json::from_slice(text).ok()?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let limits = Limits::from(&written.limits);
        let (block, nonce) = (number(&written.block)?, number(&written.nonce)?);
        let block = BlockId::from_claim(block);
        let is_sound = written.boot == boot && limits.check().is_ok();
        is_sound.then_some(Self { block, nonce, limits })
    }

    /// The entry as it is written, in a time of the machine.
    ///
    /// # Errors
    /// None that is known of.
    pub fn text(&self, boot: &str) -> io::Result<Vec<u8>> {
        let written = Written {
            block: format!("{:x}", self.block),
            nonce: format!("{:x}", self.nonce),
            boot: boot.to_owned(),
            limits: Settings::from(&self.limits),
        };
        let mut text = serde_json::to_vec(&written)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// The entries of this user.
#[derive(Debug)]
pub struct Entries(Private);

impl Entries {
    /// The user's directory of entries, made where it is missing.
    ///
    /// # Errors
    /// There is no private directory.
    pub fn open() -> io::Result<Self> {
        discnice_paths::runtime()?.directory(&name_in_space(DIRECTORY)).map(Self)
    }

    /// Keeps other commands from making a class until this value is dropped. A command that is stopped while it
    /// does so is waited for a second; two classes of one name are better than none.
    pub fn lock(&self) {
        for _ in 0..TRIES {
            match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    std::thread::sleep(APART);
                }
                _ => return,
            }
        }
    }

    /// The entry of a class; `None` where there is none to be used.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Entry> {
        let file = self.0.open(name, OFlags::RDONLY).ok()?;
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        Entry::parse(&text, &boot())
    }

    /// Writes the entry of a class; readers see the old one or the new one.
    ///
    /// # Errors
    /// As the file system's. The old one is still there then.
    pub fn write(&self, name: &str, entry: &Entry) -> io::Result<()> {
        let draft = format!("{DRAFT}{:016x}", store::random());
        let mut file = self.0.open(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let written = entry.text(&boot()).and_then(|text| file.write_all(&text));
        let written = written.and_then(|()| self.0.rename(&draft, name));
        if written.is_err() {
            let _ = self.0.remove(&draft);
        }
        written
    }

    /// Removes the entry of a class, if it leads to this block.
    pub fn remove(&self, name: &str, block: BlockId) {
        if self.read(name).is_some_and(|entry| entry.block == block) {
            let _ = self.0.remove(name);
        }
    }
}

/// What the kernel calls the time since the machine was started. random(4)
fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> Entry {
        let limits = Limits::UNLIMITED
            .with(Resource::Total, Rate::per_second(3 << 20))
            .with(Resource::NetUp, Rate::per_second(1 << 62))
            .with_when(When::Busy)
            .with_weight(7)
            .with_guest(true)
            .with_per_child(false)
            .with_at_least(Some(Rate::per_second(1 << 20)))
            .with_pace(
                Pace::DEFAULT
                    .with_policy(Choice::Sleep)
                    .with_window(Some(Nanos::SECOND))
                    .with_longest_sleep(Some(Nanos::from_millis(90))),
            )
            .with_memory(Memory::DEFAULT.with_low(Bytes::new(1 << 20)).with_high(None));
        Entry { block: BlockId::of_file(3), nonce: u64::MAX, limits }
    }

    #[test]
    fn what_was_written_is_read() {
        let text = entry().text("boot").unwrap();
        assert_eq!(Entry::parse(&text, "boot"), Some(entry()));
        assert_eq!(Entry::parse(&text, "another"), None, "the machine was started anew");
        let unlimited = Entry { limits: Limits::UNLIMITED, ..entry() };
        assert_eq!(Entry::parse(&unlimited.text("").unwrap(), ""), Some(unlimited));
    }

    #[test]
    fn limits_that_another_version_adds_are_left_out() {
        let text = r#"{"block":"1f","nonce":"7","boot":"b","more":[],"limits":{"rates":{"total":5,"tapes":1},"new":{}}}"#;
        let found = Entry::parse(text.as_bytes(), "b").unwrap();
        let expected = Limits::UNLIMITED.with(Resource::Total, Rate::per_second(5));
        assert_eq!((found.limits, found.block), (expected, BlockId::of_segment(0x1f)));
    }

    proptest! {
        #[test]
        fn nothing_that_is_no_entry_is_taken_for_one(text: Vec<u8>) {
            prop_assert_eq!(Entry::parse(&text, "boot"), None);
        }

        #[test]
        fn damage_is_survived(at in 0usize..1000, byte: u8) {
            let mut text = entry().text("boot").unwrap();
            let at = at % text.len();
            text[at] = byte;
            let _ = Entry::parse(&text, "boot");
        }
    }
}
