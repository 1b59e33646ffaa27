//! The kernel's account of the job's processes.

use std::collections::HashMap;
use std::{fs, io};

use crate::metric::Source;
use crate::tree::{Process, Stat, Tree};

/// Clock ticks a second of `/proc/PID/stat`.
const TICKS: f64 = 100.0;

/// Which number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Cpu,
    Bytes,
    Read,
    Written,
    Operations,
    Faults,
}

impl What {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "cpu" => Self::Cpu,
            "bytes" => Self::Bytes,
            "read" => Self::Read,
            "written" => Self::Written,
            "operations" => Self::Operations,
            "faults" => Self::Faults,
            _ => return None,
        })
    }

    fn of(self, stat: &Stat) -> Option<f64> {
        match self {
            Self::Cpu => Some(stat.cpu_ticks as f64 / TICKS),
            Self::Faults => Some(stat.faults as f64),
            Self::Bytes => io_sum(stat.process, &["rchar:", "wchar:"]),
            Self::Read => io_sum(stat.process, &["read_bytes:"]),
            Self::Written => io_sum(stat.process, &["write_bytes:"]),
            Self::Operations => io_sum(stat.process, &["syscr:", "syscw:"]),
        }
    }
}

/// The sum of fields of `/proc/PID/io`; `None` where it may not be read.
fn io_sum(process: Process, fields: &[&str]) -> Option<f64> {
    let pid = process.pid.as_raw_nonzero();
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let wanted = text.lines().filter_map(|line| fields.iter().find_map(|f| line.strip_prefix(f)));
    Some(wanted.filter_map(|value| value.trim().parse::<f64>().ok()).sum())
}

/// Adds up what all processes of the job did, also those that have ended.
pub(crate) struct Account {
    what: What,
    last: HashMap<Process, f64>,
    total: f64,
}

impl Account {
    pub(crate) fn new(what: What) -> Self {
        Self { what, last: HashMap::new(), total: 0.0 }
    }
}

impl Source for Account {
    fn read(&mut self, tree: &Tree) -> io::Result<f64> {
        let readings: HashMap<Process, f64> =
            tree.iter().filter_map(|stat| Some((stat.process, self.what.of(stat)?))).collect();
        if readings.is_empty() && !tree.is_empty() {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        for (process, now) in &readings {
            self.total += (now - self.last.get(process).unwrap_or(&0.0)).max(0.0);
        }
        self.last = readings;
        Ok(self.total)
    }
}
