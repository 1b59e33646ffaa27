//! The list of all tables and figures.
//!
//! To add an experiment: see `frame/experiment.rs`. An entry that needs a missing part of the
//! product says so; its paper file is there already.

mod admission;
mod aging;
mod beside;
mod checkpoint;
mod contention;
mod contention_study;
mod file_order;
mod guest_memory;
mod manners;
mod manners_case;
mod manners_study;
mod modules;
mod modules_beside;
mod overhead;
mod peer;
mod politeness;
mod prediction;
mod probing;
mod program;
mod servers;
mod simulation;
mod source_tree;
mod throttle;
mod two_tars;
mod warm_cache;
mod windows;

use crate::disk::ProfileName;
use crate::frame::experiment::{Body, Entry};
use admission::Admission;
use aging::Aging;
use checkpoint::Checkpoint;
use contention::{Contention, Foreground};
use file_order::FileOrder;
use guest_memory::GuestMemory;
use manners::{Manners, Pair};
use modules::Modules;
use modules_beside::ModulesBeside;
use overhead::Overhead;
use peer::Peer;
use politeness::Politeness;
use prediction::Prediction;
use probing::Probing;
use program::Program;
use servers::Servers;
use simulation::Simulation;
use throttle::Throttle;
use two_tars::TwoTars;
use warm_cache::WarmCache;

/// DiscNice tables 1, 2, 9 and 10 and what else a user could try, all in the same rounds.
const PEERS: &[Peer] = &[
    Peer::Alone,
    Peer::Discnice(1),
    Peer::Polite,
    Peer::Discnice(3),
    Peer::Discnice(5),
    Peer::Busy(1),
    Peer::Progress,
    Peer::Plain,
    Peer::Nice,
    Peer::Idle("none"),
    Peer::Idle("mq-deadline"),
    Peer::Idle("bfq"),
    Peer::OwnLimit(1),
    Peer::OwnLimit(5),
    Peer::Cgroup(1),
    Peer::Cgroup(5),
    Peer::CpuLimit(5),
];

const MEGABYTE: u64 = 1_000_000;

static TABLE_9: Contention = Contention { foreground: Foreground::Sequential, peers: PEERS };
static TABLE_10: Contention = Contention { foreground: Foreground::Tar, peers: PEERS };
static TABLE_4: Prediction = Prediction {
    programs: &[
        Program::Sequential,
        Program::Stride,
        Program::Random,
        Program::Create,
        Program::RegionWrite,
        Program::CreateDelete,
    ],
};
static TABLE_7: Prediction = Prediction { programs: &[Program::Tar, Program::Make, Program::Grep] };
static TABLE_8: Overhead = Overhead { programs: &[Program::Tar, Program::Make, Program::Grep] };
static FIGURE_11: Throttle = Throttle {
    programs: &[
        (Program::Sequential, 5 * MEGABYTE),
        (Program::Random, 5 * MEGABYTE),
        (Program::Stride, 5 * MEGABYTE),
        (Program::Create, 5 * MEGABYTE),
    ],
};
static FIGURE_13: Throttle = Throttle {
    programs: &[
        (Program::Grep, throttle::GREP_RATE),
        (Program::Tar, throttle::TAR_RATE),
        (Program::Make, throttle::MAKE_RATE),
    ],
};

static HARD_DISK: Politeness = Politeness { disk: ProfileName::Hdd };
static FLASH_DISK: Politeness = Politeness { disk: ProfileName::Ssd };

static DATABASE: Manners = Manners { pair: Pair::Database };
static INSTALLATION: Manners = Manners { pair: Pair::Installation };

const REAL: &[&str] = &["discnice-figure-13"];
const WARM: &[&str] = &["gray-box-figure-2"];
const DEFRAGMENTER: &[&str] = &["ms-manners-figure-3"];
const SIMULATED: &[&str] = &["ms-manners-figure-10"];
const SEQUENTIAL: &[&str] = &["discnice-table-9"];
const TAR: &[&str] = &["discnice-table-10"];
const SEQUENTIAL_AND_TAR: &[&str] = &["discnice-table-9", "discnice-table-10"];

const SYSTEMS: &str =
    "needs other kernels; eval/benches/graybox/filesystems.sh compares six file systems";

macro_rules! entry {
    ($name:literal, $body:expr) => {
        Entry {
            name: $name,
            paper: include_str!(concat!("../../paper/", $name, ".toml")),
            body: $body,
        }
    };
}

/// Every table and figure, in the order of the papers.
#[must_use]
pub fn all() -> Vec<Entry> {
    [discnice(), rate_windows(), ms_manners(), gray_box()].into_iter().flatten().collect()
}

fn discnice() -> Vec<Entry> {
    use contention_study::{cpu, pareto, rates, table};
    vec![
        entry!("discnice-table-1", Body::View { of: SEQUENTIAL, study: table }),
        entry!("discnice-table-2", Body::View { of: TAR, study: table }),
        entry!("discnice-figure-1", Body::View { of: SEQUENTIAL_AND_TAR, study: rates }),
        entry!("discnice-figure-2", Body::View { of: SEQUENTIAL_AND_TAR, study: cpu }),
        entry!("discnice-table-4", Body::Measured(&TABLE_4)),
        entry!("discnice-figure-11", Body::Measured(&FIGURE_11)),
        entry!("discnice-figure-12", Body::Measured(&Modules)),
        entry!("discnice-table-6", Body::Measured(&ModulesBeside)),
        entry!("discnice-table-7", Body::Measured(&TABLE_7)),
        entry!("discnice-figure-13", Body::Measured(&FIGURE_13)),
        entry!("discnice-figure-14", Body::View { of: REAL, study: throttle::flushes }),
        entry!("discnice-table-8", Body::Measured(&TABLE_8)),
        entry!("discnice-table-9", Body::Measured(&TABLE_9)),
        entry!("discnice-table-10", Body::Measured(&TABLE_10)),
        entry!("pareto", Body::View { of: SEQUENTIAL_AND_TAR, study: pareto }),
        entry!("politeness-hdd", Body::Measured(&HARD_DISK)),
        entry!("politeness-ssd", Body::Measured(&FLASH_DISK)),
    ]
}

fn rate_windows() -> Vec<Entry> {
    use windows::{compile, regularity, sizes, sleeps, table};
    vec![
        entry!("rate-windows-figure-1", Body::Measured(&GuestMemory)),
        entry!("rate-windows-figure-4", Body::Measured(&TwoTars)),
        entry!("rate-windows-figure-5", Body::View { of: REAL, study: regularity }),
        entry!("rate-windows-figure-6", Body::View { of: REAL, study: sleeps }),
        entry!("rate-windows-figure-7", Body::View { of: REAL, study: compile }),
        entry!("rate-windows-figure-8", Body::View { of: REAL, study: sizes }),
        entry!("rate-windows-figure-9", Body::Measured(&Checkpoint)),
        entry!("rate-windows-figure-10", Body::Measured(&Servers)),
        entry!("rate-windows-table-1", Body::View { of: REAL, study: table }),
    ]
}

fn ms_manners() -> Vec<Entry> {
    use manners_study::{duty, idle, own_time, progress};
    vec![
        entry!("ms-manners-figure-3", Body::Measured(&DATABASE)),
        entry!("ms-manners-figure-4", Body::Measured(&INSTALLATION)),
        entry!("ms-manners-figure-5", Body::View { of: DEFRAGMENTER, study: idle }),
        entry!("ms-manners-figure-6", Body::View { of: DEFRAGMENTER, study: own_time }),
        entry!("ms-manners-figure-7", Body::View { of: DEFRAGMENTER, study: duty }),
        entry!("ms-manners-figure-8", Body::View { of: DEFRAGMENTER, study: progress }),
        entry!("ms-manners-figure-9", Body::View { of: SIMULATED, study: simulation::isolation }),
        entry!("ms-manners-figure-10", Body::Measured(&Simulation)),
    ]
}

fn gray_box() -> Vec<Entry> {
    vec![
        entry!("gray-box-figure-1", Body::Measured(&Probing)),
        entry!("gray-box-figure-2", Body::Measured(&WarmCache)),
        entry!("gray-box-figure-3", Body::View { of: WARM, study: warm_cache::grep }),
        entry!("gray-box-figure-4", Body::Missing(SYSTEMS)),
        entry!("gray-box-figure-5", Body::Measured(&FileOrder)),
        entry!("gray-box-figure-6", Body::Measured(&Aging)),
        entry!("gray-box-figure-7", Body::Measured(&Admission)),
    ]
}

#[cfg(test)]
mod tests;
