//! What a report says, as `--report FILE.json` writes it. The fields are documented for users in
//! `docs/report.md`; new ones may come, old ones keep name and meaning.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::UNIX_EPOCH;

use discnice_ledger::policy::{Resource, When};
use discnice_ledger::waits::{self, BUCKETS, Counts};
use serde::{Serialize, Serializer};

use super::course::{Course, Sample, limit};
use super::verdict::verdict;
use super::waited::{Part, Waited};
use crate::classes::MappedClass;
use crate::escapes::Escaped;
use crate::launch::Ended;

/// The version of the form below.
const VERSION: u32 = 1;

/// A job from its start to its end. Times are seconds, amounts bytes, rates bytes (or operations) a
/// second; `null` stands for no limit, or for a number that was not measured.
#[derive(Debug, Serialize)]
pub struct JobRecord {
    version: u32,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// The class's name.
    pub class: String,
    /// Seconds since 1970.
    pub started: u64,
    /// How long the command took.
    pub seconds: f64,
    /// How it ended.
    pub end: CommandEnd,
    /// The thresholds at its end, by the names of resources.
    pub limits: BTreeMap<&'static str, Option<u64>>,
    /// When they hold: `always`, or `busy` while others are.
    #[serde(serialize_with = "name_of")]
    pub when: When,
    /// Whether its children had these limits each for itself. The numbers are those of all.
    pub per_child: bool,
    /// Disk traffic of the whole class, and of those of children, while the command ran.
    pub disk: Disk,
    /// Calls on names and inodes.
    pub metadata: Metadata,
    /// Network traffic.
    pub network: Network,
    /// How often a thread was held.
    pub waits: u64,
    /// How long altogether; longer than the command took when several threads waited.
    pub waited_seconds: f64,
    /// For how long processes stood, held from outside, each for itself.
    pub stood_seconds: f64,
    /// In words, what it waited for and for how long; `null` if nothing is worth telling.
    pub verdict: Option<String>,
    /// For how long by the clock something waited, by what for.
    pub waited_for: Vec<Part>,
    /// The process of others that moved most while the class gave way to them, as far as that was seen.
    pub most_in_the_way: Option<String>,
    /// How long the waits were; ranges without any are left out.
    pub wait_histogram: Vec<Waits>,
    /// Sleep times in all ranges, empty ones included.
    #[serde(skip)]
    pub counts: Counts,
    /// Processes that no limit held.
    pub not_limited: Vec<Escaped>,
    /// What a sample covers; the last one may cover less.
    pub sample_seconds: f64,
    /// The course.
    pub samples: Vec<Sample>,
}

/// How a command ended: one of the two is set.
#[derive(Debug, Serialize)]
pub struct CommandEnd {
    /// The command's exit status.
    pub status: Option<u8>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// Disk traffic.
#[derive(Debug, Serialize)]
pub struct Disk {
    /// Bytes read, by the kernel's account.
    pub read_bytes: u64,
    /// Bytes written, by the kernel's account.
    pub written_bytes: u64,
    /// Bytes that were predicted for reading and writing together, where all are (`--estimator
    /// predict`).
    pub predicted_bytes: Option<u64>,
    /// What the files that were made cost the disk beside their data (journal, inode tables), as
    /// the host profile knows: beside what was predicted or charged. Not charged to any process.
    pub file_overhead_bytes: Option<u64>,
    /// Operations of at most 512 KiB.
    pub operations: u64,
    /// Average over the whole time.
    pub bytes_per_second: f64,
}

/// Calls on names and inodes.
#[derive(Debug, Serialize)]
pub struct Metadata {
    /// How many.
    pub operations: u64,
}

/// Network traffic.
#[derive(Debug, Serialize)]
pub struct Network {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

/// Waits of about the same length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waits {
    /// They took at least so long.
    pub from_seconds: f64,
    /// They took less than this.
    pub to_seconds: f64,
    /// How many.
    pub count: u64,
}

impl JobRecord {
    /// The threshold of a resource at the end.
    pub fn limit(&self, resource: Resource) -> Option<u64> {
        self.limits.get(resource.name()).copied().flatten()
    }

    /// The record of a job that has ended.
    pub fn new(
        command: &[OsString],
        found: &MappedClass,
        course: &Course,
        waited: &Waited,
        ended: Ended,
        not_limited: Vec<Escaped>,
    ) -> Self {
        let (total, seconds) = (course.total(), course.elapsed().as_secs_f64());
        let [read, written] = [Resource::Read, Resource::Write].map(|one| total.total(one));
        let (limits, predicts) = (found.class.limits(), found.class.predicts());
        let (status, signal) = match ended {
            Ended::Exited(status) | Ended::Unstarted(status) => (Some(status), None),
            Ended::Killed(signal) => (None, Some(signal)),
        };
        Self {
            version: VERSION,
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            class: found.name(),
            started: course.started().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            seconds,
            end: CommandEnd { status, signal },
            limits: Resource::ALL.map(|one| (one.name(), limit(limits.rate(one)))).into(),
            when: limits.when(),
            per_child: limits.per_child(),
            disk: Disk {
                read_bytes: read,
                written_bytes: written,
                predicted_bytes: predicts.then_some(total.prediction.predicted),
                file_overhead_bytes: Some(total.file_overhead),
                operations: total.total(Resource::Operations),
                bytes_per_second: (read + written) as f64 / seconds.max(1e-3),
            },
            metadata: Metadata { operations: total.total(Resource::Metadata) },
            network: Network {
                sent_bytes: total.total(Resource::NetUp),
                received_bytes: total.total(Resource::NetDown),
            },
            waits: total.waits,
            waited_seconds: total.waited,
            stood_seconds: waited.stood(),
            verdict: verdict(found, course, waited),
            waited_for: waited.parts(total.waited + waited.stood(), seconds),
            most_in_the_way: waited.most_in_the_way(),
            wait_histogram: histogram(&total.counts),
            counts: total.counts,
            not_limited,
            sample_seconds: course.interval().as_secs_f64(),
            samples: course.samples().to_vec(),
        }
    }
}

fn name_of<S: Serializer>(when: &When, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(when.name())
}

fn histogram(counts: &[u64; BUCKETS]) -> Vec<Waits> {
    let bucket = |(bucket, count): (usize, &u64)| {
        let bound = |bucket| waits::begin(bucket).as_secs_f64();
        Waits { from_seconds: bound(bucket), to_seconds: bound(bucket + 1), count: *count }
    };
    counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bucket).collect()
}
