//! The nodes of a class, as its server has them.

use crate::settings::Settings;

/// A class on its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What is set.
    pub settings: Settings,
    /// Milliseconds for which it still learns what its nodes have, after it was restarted.
    pub learning: u64,
    /// By name.
    pub nodes: Vec<NodeRow>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// As it calls itself.
    pub name: String,
    /// Bytes a second beyond the floor that it may be using.
    pub has: u64,
    /// Bytes a second beyond the floor that it could use.
    pub wants: u64,
    /// Its part relative to others'.
    pub weight: u32,
    /// Milliseconds after which it is forgotten.
    pub forgotten_in: u64,
}

impl NodeRow {
    /// Returns true if the node has missed renewals: it is cut off, or dead.
    #[must_use]
    pub const fn is_cut_off(&self, settings: &Settings) -> bool {
        self.forgotten_in < settings.lease / 2
    }
}

impl Table {
    /// Bytes a second of all leases.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.nodes.iter().map(|row| row.has).fold(0, u64::saturating_add)
    }
}

/// What an entry of the script says; `None` for what is none.
pub(crate) fn row(name: &[u8], entry: &[u8], expires: Option<f64>, clock: u64) -> Option<NodeRow> {
    let name = String::from_utf8_lossy(name).into_owned();
    let mut words = std::str::from_utf8(entry).ok()?.split(' ');
    let (_sequence, has, _mode) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let (wants, weight) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let expires = expires.filter(|one| *one >= 0.0).unwrap_or(0.0) as u64;
    Some(NodeRow { name, has, wants, weight, forgotten_in: expires.saturating_sub(clock) })
}

#[cfg(test)]
mod tests {
    use discnice_units::Rate;

    use super::*;

    #[test]
    fn entries_of_others_are_left_out() {
        let row = |entry: &str| super::row(b"n", entry.as_bytes(), Some(30_000.0), 10_000);
        let good = row("17 500 h 900 100").unwrap();
        assert_eq!((good.has, good.wants, good.weight, good.forgotten_in), (500, 900, 100, 20_000));
        let settings = Settings::new(Rate::per_second(1 << 30), None, None, Some(30_000)).unwrap();
        assert!(!good.is_cut_off(&settings));
        assert!(NodeRow { forgotten_in: 9000, ..good }.is_cut_off(&settings));
        for entry in ["", "1 2", "1 x h 3 4", "1 2 h 3 -4", "1 2 h 3 99999999999"] {
            assert_eq!(row(entry), None, "{entry}");
        }
    }
}
