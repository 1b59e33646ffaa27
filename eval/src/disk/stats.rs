//! `disk stats`: what the device and the model have counted.

use std::fmt::Write;

use anyhow::Context;
use discnice_units::{Bytes, Nanos};
use serde::Serialize;

use super::control::{self, Ask};
use super::device::DeviceCounters;
use super::model::Counters;
use super::state::{Places, State};

/// Everything counted; the fields are the stable form of `disk stats --json`.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// Which disk.
    #[serde(flatten)]
    pub state: State,
    /// The kernel's counters, since the loop device was attached to this or an earlier file.
    pub device: DeviceCounters,
    /// The model's counters, since `disk up`; times in nanoseconds.
    pub model: Counters,
}

impl Stats {
    /// Reads them.
    ///
    /// # Errors
    /// The disk is on its way down.
    pub fn read(places: &Places, state: State) -> anyhow::Result<Self> {
        let device = state.loop_device.as_ref().context("the disk has no loop device")?;
        let device = DeviceCounters::of(device)?;
        Ok(Self { device, model: control::ask(&places.socket(), Ask::Stats)?, state })
    }

    /// A table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let (device, model) = (&self.device, &self.model);
        let mut text = format!(
            "{} disk of {} at {} on {}, scheduler {}\n\n{:<22}{:>14}{:>14}\n",
            format!("{:?}", self.state.profile).to_lowercase(),
            Bytes::new(self.state.size),
            self.state.mount.display(),
            self.state.loop_device.as_deref().unwrap_or("nothing".as_ref()).display(),
            self.state.scheduler,
            "",
            "device",
            "model",
        );
        let millis = |ms: u64| Nanos::from_millis(ms).to_string();
        let rows = [
            ("reads", device.reads.to_string(), model.reads.to_string()),
            ("read", bytes(device.read_bytes), bytes(model.read_bytes)),
            ("writes", device.writes.to_string(), model.writes.to_string()),
            ("written", bytes(device.write_bytes), bytes(model.write_bytes)),
            ("busy", millis(device.busy_ms), Nanos(model.busy_ns).to_string()),
            ("look-ahead hits", String::new(), model.look_ahead_hits.to_string()),
            ("seeks", String::new(), model.seeks.to_string()),
            ("time seeking", String::new(), Nanos(model.seek_ns).to_string()),
            ("time in rotation", String::new(), Nanos(model.rotation_ns).to_string()),
        ];
        for (name, device, model) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<22}{device:>14}{model:>14}");
        }
        text
    }
}

fn bytes(count: u64) -> String {
    Bytes::new(count).to_string()
}
