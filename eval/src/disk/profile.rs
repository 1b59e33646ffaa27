//! The disks that can be emulated, as numbers.

use clap::ValueEnum;
use discnice_units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

/// Name of an emulated disk, as typed after `--profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileName {
    /// The papers' disk: 7200 rpm, 48 MB/s, seeks of 0.8 to 15 ms
    Hdd,
    /// A SATA flash disk: no seeks, 80 us latency, 500 MB/s
    Ssd,
    /// A file server over a slow network: 2 ms round trip, 11 MB/s
    Nfs,
}

/// What a disk's answer times are made of.
///
/// `latency` is pipelined: it delays an answer without keeping the next request from being served.
/// Everything else occupies the one head (or flash channel, or link).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Time of the shortest arm movement.
    pub seek_min: Nanos,
    /// Added to `seek_min` times the square root of distance over disk size.
    pub seek_span: Nanos,
    /// One turn of the platter; zero for a disk that does not turn.
    pub rotation: Nanos,
    /// Rate at which data passes the head.
    pub transfer: Rate,
    /// How far the disk reads on by itself after a read, in bytes.
    pub look_ahead: u64,
    /// Time from the end of the service to the answer.
    pub latency: Nanos,
}

impl ProfileName {
    /// The numbers behind the name.
    ///
    /// `hdd` follows the DiscNice paper's machine (7200 rpm SCSI disk, 47 MB/s sequential: section
    /// 2.1 and table 3).
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::Hdd => Profile {
                seek_min: Nanos(800_000),
                seek_span: Nanos(14_200_000),
                rotation: Nanos(60 * 1_000_000_000 / 7200),
                transfer: Rate::per_second(48_000_000),
                look_ahead: 512 * 1024,
                latency: Nanos(0),
            },
            Self::Ssd => Profile {
                seek_min: Nanos(0),
                seek_span: Nanos(0),
                rotation: Nanos(0),
                transfer: Rate::per_second(500_000_000),
                look_ahead: 0,
                latency: Nanos(80_000),
            },
            Self::Nfs => Profile {
                seek_min: Nanos(0),
                seek_span: Nanos(0),
                rotation: Nanos(0),
                transfer: Rate::per_second(11_000_000),
                look_ahead: 0,
                latency: Nanos(2_000_000),
            },
        }
    }

    /// Whether the kernel is to treat the device as a rotating one.
    #[must_use]
    pub const fn rotational(self) -> bool {
        matches!(self, Self::Hdd)
    }
}
