//! The throttled state (Rate Windows, 3.1): are the others busy?
//!
//! What others do to a disk is what the disk does less what constrained classes did. Above
//! `high` of that the constrained classes are held, below `low` they are not; the distance keeps
//! traffic near one threshold from toggling the state. Two windows make it quick to give way and
//! slow to come back: traffic must show within [`ATTACK`], and be gone for all of [`RELEASE`].
//!
//! A job at full speed starves others down to little traffic. So while tasks stall on I/O
//! ([`Seen::stalled`]), far less of it counts as busy ([`Thresholds::starved`]).
//!
//! Where it is known exactly what is ours ([`Seen::waits`]), the others' waiting decides instead:
//! if their requests wait for a few milliseconds, we give way at once, and for no longer than 0.4 s after the last of them.

use discnice_units::{Nanos, Rate};

/// Age of an observation at which a new one is made.
pub const INTERVAL: Nanos = Nanos::from_millis(50);
//= rate-windows/3.1-measured
/// Time over which others' traffic must exceed `high`: with [`INTERVAL`] it bounds the reaction.
pub const ATTACK: Nanos = Nanos::from_millis(200);
//= rate-windows/3.1-measured
/// Time over which it must be below `low`.
pub const RELEASE: Nanos = Nanos::from_millis(1000);
/// A gap between observations after which the first only starts anew.
pub const STALE: Nanos = Nanos(2 * Nanos::SECOND.0);

/// Smallest `high`: what a machine's housekeeping moves.
const HIGH_MIN: u64 = 1 << 20;
/// Largest `high`: so much is felt on any disk.
const HIGH_MAX: u64 = 16 << 20;
/// Others' traffic that counts while tasks stall: 64 random reads of 4 KiB a second.
const STARVED: u64 = 256 << 10;
/// Others' traffic that counts on the network, where nothing tells of tasks that starve. Names,
/// clocks and keystrokes move less.
const NETWORK_HIGH: u64 = 256 << 10;
/// Others' waiting within [`ATTACK`] that counts: a seek, or as much in many requests of a fast disk.
const NOTICED: Nanos = Nanos::from_millis(5);
/// Longest wait for others that are quiet.
const PATIENCE: Nanos = Nanos::from_millis(400);
/// Headers of a packet: 14 bytes of Ethernet, 40 of IPv6, 32 of TCP with timestamps. Those of IPv4
/// are 20 less, and what they hide of others' traffic is 1.4 % of one's own.
const HEADERS: u64 = 86;

//= rate-windows/3.1-hysteresis
/// When others are busy, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Above this the state becomes throttled; thresh_high of the paper.
    pub high: Rate,
    /// Below this it ceases to be; thresh_low.
    pub low: Rate,
    /// Instead of `high` while tasks stall on I/O; half of it instead of `low`.
    pub starved: Rate,
}

impl Thresholds {
    /// For all network interfaces together, whatever they can do: what starves beside a job at full
    /// speed moves little even there.
    pub const NETWORK: Self = Self {
        high: Rate::per_second(NETWORK_HIGH),
        low: Rate::per_second(NETWORK_HIGH / 2),
        starved: Rate::per_second(NETWORK_HIGH),
    };

    /// For a disk of this bandwidth: a fiftieth of it, and half of that.
    #[must_use]
    pub const fn of(bandwidth: Rate) -> Self {
        let high = bandwidth.get() / 50;
        let high = if high < HIGH_MIN { HIGH_MIN } else { high };
        let high = if high > HIGH_MAX { HIGH_MAX } else { high };
        Self {
            high: Rate::per_second(high),
            low: Rate::per_second(high / 2),
            starved: Rate::per_second(STARVED),
        }
    }
}

/// What was seen of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Bytes within [`ATTACK`].
    pub attack: u64,
    /// Set if they came in more than one observation: a single burst is write-back.
    pub lasting: bool,
    /// Bytes within [`RELEASE`].
    pub release: u64,
    /// Set if tasks stall on I/O.
    pub stalled: bool,
    /// How long the state has lasted.
    pub since: Nanos,
    /// The others' waiting, where the observation shows all that is ours.
    pub waits: Option<Waits>,
}

/// The others' waiting, of which the disk tells: what is tiny but waits counts as much as what is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// For how long their requests waited within [`ATTACK`], all together.
    pub attack: Nanos,
    /// In how many spans of [`INTERVAL`] within [`RELEASE`] any did.
    pub spans: u64,
    /// How long ago the last did.
    pub quiet: Nanos,
}

impl Waits {
    /// Returns how long others are waited for once they are quiet: the longer, the more often they
    /// came lately. One request a second costs a job a fifth of its time at most, and a process
    /// that reads again and again still finds us waiting between two reads.
    const fn patience(&self) -> Nanos {
        let patience = INTERVAL.0.saturating_mul(self.spans.saturating_add(1));
        Nanos(if patience > PATIENCE.0 { PATIENCE.0 } else { patience })
    }
}

//= rate-windows/3.1-hysteresis
//= ms-manners/3-symmetry
/// The state after an observation.
#[must_use]
pub const fn is_throttled(was: bool, thresholds: &Thresholds, seen: &Seen) -> bool {
    if let Some(waits) = seen.waits {
        if was {
            return waits.quiet.0 < waits.patience().0;
        }
        if waits.attack.0 >= NOTICED.0 {
            return true;
        }
    }
    let starved = thresholds.starved.units_in(RELEASE);
    if was {
        let low = thresholds.low.units_in(RELEASE);
        let low = if seen.stalled && starved / 2 < low { starved / 2 } else { low };
        // Before that the window shows also what was before the onset.
        return seen.since.0 < RELEASE.0 || seen.release > low;
    }
    let onset = seen.attack > thresholds.high.units_in(ATTACK);
    let starving = seen.stalled && seen.release > starved;
    seen.lasting && (onset || starving)
}

/// Tells others' traffic from our own: `own` bytes were charged and `device` bytes moved since the
/// last observation; returns the bytes that nothing explains, and what is left in the pool of
/// charges that the device has not yet moved. Reads wait there for the disk, writes for write-back.
#[must_use]
pub const fn explain(pool: u64, own: u64, device: u64, most: u64) -> (u64, u64) {
    let known = pool.saturating_add(own);
    let rest = known.saturating_sub(device);
    (device.saturating_sub(known), if rest > most { most } else { rest })
}

/// What programs asked for at least, of the `bytes` that an interface has counted in `packets`: the
/// rest is their headers. Of segments that the interface itself cuts (segmentation offload), most
/// drivers count one packet and one header, the others as many of both; so it is true of each.
///
/// A total that may go down: acknowledgements are smaller than what is taken off for them.
#[must_use]
pub const fn payload(bytes: u64, packets: u64) -> u64 {
    bytes.wrapping_sub(packets.wrapping_mul(HEADERS))
}

/// What is left after `gap` of a pool that loses half within `half_life`: charges that the device
/// never moves (deleted before it was written).
#[must_use]
pub const fn decayed(pool: u64, gap: Nanos, half_life: Nanos) -> u64 {
    let lost = (pool as u128 * gap.0 as u128) / (2 * half_life.0 as u128 + 1);
    pool.saturating_sub(if lost > pool as u128 { pool } else { lost as u64 })
}

/// Bytes of an observation that covers `gap`, for each `span` of it: where disks are slow, members
/// are slow to look, and it is unknown when the others moved something.
#[must_use]
pub const fn spread(bytes: u64, gap: Nanos, span: Nanos) -> u64 {
    if gap.0 <= span.0 {
        return bytes;
    }
    let part = bytes as u128 * span.0 as u128 / gap.0 as u128;
    part as u64
}

//= rate-windows/3.1-several
/// The part of a threshold that a class of `weight` gets while classes of `all` weight together
/// are held at once; at least one unit a second.
#[must_use]
pub const fn share(threshold: Rate, weight: u32, all: u32) -> Rate {
    if threshold.is_unlimited() || weight >= all {
        return threshold;
    }
    let part = threshold.get() as u128 * weight as u128 / all as u128;
    Rate::per_second(if part == 0 { 1 } else { part as u64 })
}

#[cfg(test)]
mod tests;
