//! What an administrator sets for a class on the server.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;

use discnice_units::Rate;

/// Version of the keys of a class and of the script's arguments.
pub const VERSION: u32 = 1;

/// Lowest floor, which is what a node has that no server has ever admitted.
pub const LEAST: Rate = Rate::per_second(4096);
/// Leases that may be set, in milliseconds.
pub const LEASES: RangeInclusive<u64> = 1_000..=3_600_000;
/// Milliseconds of a lease if nothing else is said.
pub const LEASE: u64 = 30_000;
/// Nodes for which there are floors if nothing else is said.
pub const NODES: u64 = 100;
/// Greatest number of nodes.
pub const NODES_MAX: u64 = 100_000;
/// The floors of all nodes take one part in so many of the cap if nothing else is said.
const FLOORS: u64 = 10;
/// A higher cap is a mistake; sums of what is set are exact.
const CAP_MAX: Rate = Rate::per_second(1 << 50);

/// A class's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes a second of all nodes together.
    pub cap: Rate,
    /// Bytes a second of each node, with or without a lease.
    pub floor: Rate,
    /// Nodes that are admitted.
    pub nodes: u64,
    /// Milliseconds of a lease.
    pub lease: u64,
}

/// Why settings cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    /// A cap of zero, or none.
    NoCap,
    /// A floor below [`LEAST`].
    LowFloor(Rate),
    /// The floors of all nodes reach the cap.
    Floors(Settings),
    /// No node, or more than [`NODES_MAX`].
    Nodes,
    /// A lease outside of [`LEASES`].
    Lease,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCap => f.write_str("the cap must be from 4.0 KiB/s up to 1 PiB/s"),
            Self::LowFloor(floor) => write!(
                f,
                "a floor of {floor} is below {LEAST}, which a node has that no server admitted",
            ),
            Self::Floors(Settings { cap, floor, nodes, .. }) => write!(
                f,
                "the floors of {nodes} nodes, {floor} each, leave nothing of a cap of {cap}; lower --floor or --nodes",
            ),
            Self::Nodes => write!(f, "the number of nodes must be from 1 to {NODES_MAX}"),
            Self::Lease => f.write_str("a lease must be from 1 second to an hour"),
        }
    }
}

impl std::error::Error for Contradiction {}

impl Settings {
    /// Returns settings with what was not given as it is usual.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn new(
        cap: Rate,
        floor: Option<Rate>,
        nodes: Option<u64>,
        lease: Option<u64>,
    ) -> Result<Self, Contradiction> {
        let nodes = nodes.unwrap_or(NODES);
        let usual = || Rate::per_second(cap.get() / FLOORS / nodes.max(1)).max(LEAST);
        let floor = floor.unwrap_or_else(usual);
        let settings = Self { cap, floor, nodes, lease: lease.unwrap_or(LEASE) };
        settings.check().map(|()| settings)
    }

    /// Checks that the settings make sense together.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Contradiction> {
        if !(LEAST..=CAP_MAX).contains(&self.cap) {
            return Err(Contradiction::NoCap);
        }
        if self.floor < LEAST {
            return Err(Contradiction::LowFloor(self.floor));
        }
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(Contradiction::Nodes);
        }
        if !LEASES.contains(&self.lease) {
            return Err(Contradiction::Lease);
        }
        match self.floor.get().checked_mul(self.nodes) {
            Some(floors) if floors < self.cap.get() => Ok(()),
            _ => Err(Contradiction::Floors(*self)),
        }
    }

    /// Bytes a second that nodes can have beyond their floors, together.
    #[must_use]
    pub const fn pool(&self) -> u64 {
        self.cap.get().saturating_sub(self.floor.times(self.nodes).get())
    }

    /// Reads the fields of the server's hash.
    #[must_use]
    pub fn parse(fields: &HashMap<String, String>) -> Option<Self> {
        let number = |name: &str| fields.get(name)?.parse().ok();
        Some(Self {
            cap: Rate::per_second(number("cap")?),
            floor: Rate::per_second(number("floor")?),
            nodes: number("nmax")?,
            lease: number("lease")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_for_floors() {
        let settings = Settings::new(Rate::per_second(600_000_000), None, None, None).unwrap();
        let floor = Rate::per_second(600_000);
        assert_eq!((settings.floor, settings.nodes, settings.lease), (floor, 100, 30_000));
        assert_eq!(settings.pool(), 540_000_000);
        let small = Settings::new(Rate::per_second(1_000_000), None, None, None).unwrap();
        assert_eq!(small.floor, LEAST);
    }

    #[test]
    fn contradictions_are_named() {
        let new = |cap, floor: Option<u64>, nodes, lease| {
            let (cap, floor) = (Rate::per_second(cap), floor.map(Rate::per_second));
            Settings::new(cap, floor, nodes, lease).unwrap_err()
        };
        assert_eq!(new(0, None, None, None), Contradiction::NoCap);
        assert_eq!(new(u64::MAX, None, None, None), Contradiction::NoCap);
        assert_eq!(new(1 << 20, Some(1), None, None), Contradiction::LowFloor(Rate::per_second(1)));
        assert_eq!(new(1 << 20, None, Some(0), None), Contradiction::Nodes);
        assert_eq!(new(1 << 20, None, None, Some(5)), Contradiction::Lease);
        let floors = new(1 << 20, Some(1 << 15), Some(32), None);
        assert!(matches!(floors, Contradiction::Floors(_)));
        assert!(!floors.to_string().contains('\n'));
        assert!(matches!(new(1 << 20, Some(u64::MAX), None, None), Contradiction::Floors(_)));
    }
}
