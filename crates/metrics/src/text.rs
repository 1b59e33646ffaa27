//! What is told of each class.

use std::fmt;

use discnice_escape::label;
use discnice_ledger::Class;
use discnice_ledger::policy::{Limits, Resource};
use discnice_ledger::waits::{self, BUCKETS, Counts};
use discnice_sys::time;
use discnice_units::Rate;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// Buckets of the ledger that become one: two doublings.
const COARSE: usize = 8;

/// One class at one moment.
#[derive(Debug, Clone)]
pub struct ClassMetrics {
    name: String,
    limits: Limits,
    /// Units that passed of each resource, at the place of its number.
    totals: [u64; Resource::COUNT],
    waited: f64,
    counts: Counts,
    /// Bytes that passed of those that may pass in all.
    used: u64,
    fleet: Option<Fleet>,
    held: ProcessCounts,
}

/// What a class has of a budget that it shares with those of other machines.
#[derive(Debug, Clone, Copy)]
struct Fleet {
    /// Bytes a second that it may move now.
    allowed: u64,
    /// Bytes a second of all machines together, if a server told.
    cap: Option<u64>,
    /// How long its lease lasts.
    lease: f64,
}

impl Fleet {
    fn of(class: &Class) -> Option<Self> {
        let now = time::now();
        let fleet = class.fleet();
        let allowed = fleet.allowed(now)?.get();
        let lease = fleet.lease_left(now).as_secs_f64();
        Some(Self { allowed, cap: fleet.cap().map(Rate::get), lease })
    }
}

/// Processes of a class, by whether they are held to its thresholds.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessCounts {
    /// How many are.
    pub limited: u64,
    /// How many are not.
    pub escaped: u64,
    /// Bytes that these have moved, as far as the kernel tells.
    pub escaped_bytes: u64,
}

impl ClassMetrics {
    /// Reads a class's meters; `held` tells of its processes.
    #[must_use]
    pub fn of(name: &str, class: &Class, held: ProcessCounts) -> Self {
        Self {
            name: label(name).into_owned(),
            limits: class.limits(),
            totals: Resource::ALL.map(|one| class.meter(one).total()),
            waited: class.waits().1.as_secs_f64(),
            counts: class.wait_histogram().counts(),
            used: class.disk_total_used().get(),
            fleet: Fleet::of(class),
            held,
        }
    }

    fn buckets(&self) -> Vec<(f64, u64)> {
        let bound = |end: usize| match end {
            BUCKETS => f64::INFINITY,
            end => waits::begin(end).as_secs_f64(),
        };
        let parts = self.counts.chunks(COARSE).enumerate();
        parts.map(|(part, counts)| (bound((part + 1) * COARSE), counts.iter().sum())).collect()
    }
}

/// The metrics of some classes.
///
/// # Panics
/// Never: writing to a string cannot fail.
#[must_use]
pub fn text(classes: Vec<ClassMetrics>) -> String {
    let mut registry = Registry::with_prefix("discnice");
    registry.register_collector(Box::new(Classes(classes)));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Classes(Vec<ClassMetrics>);

impl Collector for Classes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        self.totals(encoder, "class", "Traffic of a class", &Unit::Bytes, Resource::is_bytes)?;
        let calls = Unit::Other("operations".into());
        self.totals(encoder, "class", "Operations of a class", &calls, |one| !one.is_bytes())?;
        self.limits(encoder)?;
        self.disk_totals(encoder)?;
        self.waits(encoder)?;
        self.processes(encoder)?;
        self.fleets(encoder)?;
        self.escaped(encoder)
    }
}

impl Classes {
    /// Encodes totals without sums like all disk traffic: adding up would count them twice.
    fn totals(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: &Unit,
        of: impl Fn(Resource) -> bool,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, Some(unit), MetricType::Counter)?;
        let parts = || Resource::ALL.into_iter().filter(|one| of(*one) && !is_sum(*one));
        for class in &self.0 {
            for one in parts() {
                let labels = [("class", class.name.as_str()), ("resource", one.name())];
                let total = ConstCounter::new(class.totals[one as usize]);
                total.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn limits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Threshold of a class, in bytes or operations a second; none means no limit";
        let mut family = encoder.encode_descriptor("class_limit", help, None, MetricType::Gauge)?;
        for class in &self.0 {
            for one in Resource::ALL {
                let rate = class.limits.rate(one);
                if rate.is_unlimited() {
                    continue;
                }
                let labels = [("class", class.name.as_str()), ("resource", one.name())];
                ConstGauge::new(rate.get() as f64).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn disk_totals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let bounded =
            || self.0.iter().filter_map(|class| Some((class, class.limits.disk_total()?.get())));
        for (name, help, used) in [
            (
                "class_disk_total",
                "Disk traffic that a class may move in all; none means no bound",
                false,
            ),
            ("class_disk_total_used", "Disk traffic of a class that counts for its bound", true),
        ] {
            let unit = Some(&Unit::Bytes);
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for (class, most) in bounded() {
                let labels = [("class", class.name.as_str())];
                let bytes = if used { class.used } else { most };
                ConstGauge::new(bytes).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn fleets(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&Fleet) -> Option<f64>;
        let all: [(&str, &str, Option<&Unit>, Value); 3] = [
            (
                "class_fleet_allowed",
                "Bytes a second that a class may move of a budget of several machines",
                None,
                |fleet| Some(fleet.allowed as f64),
            ),
            (
                "class_fleet_cap",
                "Bytes a second of all machines of that budget; none before its server told",
                None,
                |fleet| Some(fleet.cap? as f64),
            ),
            (
                "class_fleet_lease",
                "How long the class's lease lasts; zero while it has its floor only",
                Some(&Unit::Seconds),
                |fleet| Some(fleet.lease),
            ),
        ];
        for (name, help, unit, value) in all {
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for class in &self.0 {
                let Some(value) = class.fleet.as_ref().and_then(value) else { continue };
                let labels = [("class", class.name.as_str())];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn waits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How long calls of a class were held";
        let unit = Unit::Seconds;
        let mut family =
            encoder.encode_descriptor("class_wait", help, Some(&unit), MetricType::Histogram)?;
        for class in &self.0 {
            let labels = [("class", class.name.as_str())];
            let (buckets, count) = (class.buckets(), class.counts.iter().sum());
            family.encode_family(&labels)?.encode_histogram::<[(&str, &str); 0]>(
                class.waited,
                count,
                &buckets,
                None,
            )?;
        }
        Ok(())
    }

    fn escaped(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Disk traffic so far of a class's processes that are not held to its thresholds";
        let (name, unit) = ("class_not_limited", Unit::Bytes);
        let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for class in &self.0 {
            let labels = [("class", class.name.as_str())];
            ConstGauge::new(class.held.escaped_bytes).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn processes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Processes of a class, by whether they are held to its thresholds";
        let mut family =
            encoder.encode_descriptor("class_processes", help, None, MetricType::Gauge)?;
        for class in &self.0 {
            for (limited, count) in [("yes", class.held.limited), ("no", class.held.escaped)] {
                let labels = [("class", class.name.as_str()), ("limited", limited)];
                ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Returns true if a resource is the sum of others.
fn is_sum(resource: Resource) -> bool {
    Resource::ALL.into_iter().any(|one| one.whole() == Some(resource))
}

#[cfg(test)]
mod tests;
