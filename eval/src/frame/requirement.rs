//! What an experiment needs of a machine, and how to say that it is not there.

use discnice_units::Bytes;

use crate::built;
use crate::disk::ProfileName;
use crate::proc::meminfo;
use crate::site::Site;
use crate::tool;

/// One thing needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// An emulated disk.
    Disk,
    /// An emulated disk of this kind, whatever kind the arguments ask for.
    DiskOf(ProfileName),
    /// A program on the search path.
    Program(&'static str),
    /// Memory for files outside of the disk.
    Memory(Bytes),
    /// The `discnice` program with its `run` command.
    Discnice,
    /// A control group that limits memory.
    MemoryLimit,
    /// Swap of its own.
    Swap,
    /// The program that sorts with admitted memory.
    Sort,
    /// A network of its own.
    Link,
    /// The program that simulates days of a regulated job.
    Simulation,
    /// `discnice run` with `--estimator predict` and `--report FILE.json`.
    Prediction,
}

impl Requirement {
    /// What is lacking, with what to do about it; `None` if nothing is.
    #[must_use]
    pub fn lack(self, site: &Site) -> Option<String> {
        match self {
            Self::Disk => site.disk_lack(),
            Self::DiskOf(kind) => match crate::disk::running() {
                Ok(disk) if disk.profile != kind => Some(
                    "another kind of disk is up; remove it with: discnice-eval disk down".into(),
                ),
                _ => site.disk_lack(),
            },
            Self::Program(name) => {
                tool::find(name).is_none().then(|| format!("{name} is not installed"))
            }
            Self::Memory(needed) => {
                let free = Bytes::new(meminfo("MemAvailable").unwrap_or(0));
                (free < needed).then(|| format!("needs {needed} of memory, {free} are available"))
            }
            Self::MemoryLimit => crate::lab::memory_limit::lack(),
            Self::Swap => crate::lab::swap::lack(),
            Self::Sort => built::SORT.file().err().map(|error| format!("{error:#}")),
            Self::Link => crate::lab::link::lack(),
            Self::Simulation => built::SIMULATION.file().err().map(|error| format!("{error:#}")),
            Self::Prediction => site.prediction_lack(),
            Self::Discnice => site.discnice().err().map(|error| format!("{error:#}")),
        }
    }
}
