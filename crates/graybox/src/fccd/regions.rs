//! The residency of a file, region by region.

use discnice_units::Nanos;

use crate::pagecache::Means;

/// A part of a file, and how much of it is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Bytes; never 0.
    pub length: u64,
    /// Bytes that are cached, at most `length`.
    pub cached_bytes: u64,
}

/// What the probing itself did to the cache: the paper's Heisenberg effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heisenberg {
    /// Probes made.
    pub probes: u64,
    /// Pages that the probes brought in.
    pub pages_read: u64,
    /// Time that the probing took.
    pub time: Nanos,
}

/// The residency of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residency {
    /// Size of the file in bytes.
    pub size: u64,
    /// How it was found out.
    pub means: Means,
    /// Disjoint, in file order, covering the file. Neighbours that are both wholly cached, or
    /// both not at all, are one region. Empty if `means` is [`Means::Unknown`].
    pub regions: Vec<Region>,
    /// The effect of the observation on the observed.
    pub heisenberg: Heisenberg,
}

impl Residency {
    /// Cached bytes of the file; `None` if unknown.
    #[must_use]
    pub fn cached_bytes(&self) -> Option<u64> {
        let sum = self.regions.iter().map(|region| region.cached_bytes).sum();
        (self.means != Means::Unknown).then_some(sum)
    }

    /// Cached part of the file, at most 1; an empty file counts as cached. `None` if unknown.
    #[must_use]
    pub fn cached_frac(&self) -> Option<f64> {
        let cached = self.cached_bytes()?;
        Some(if self.size == 0 { 1.0 } else { cached as f64 / self.size as f64 })
    }

    /// Cached bytes of `offset .. offset + length`, spread evenly within a partly cached region.
    #[must_use]
    pub fn cached_within(&self, offset: u64, length: u64) -> u64 {
        let end = offset + length;
        let first = self.regions.partition_point(|region| region.offset + region.length <= offset);
        let touching = self.regions[first..].iter().take_while(|region| region.offset < end);
        touching
            .map(|region| {
                let overlap = end.min(region.offset + region.length) - offset.max(region.offset);
                (u128::from(region.cached_bytes) * u128::from(overlap) / u128::from(region.length))
                    as u64
            })
            .sum()
    }
}

/// Adds a region, or widens the last one if both are wholly cached or both not at all.
pub(super) fn push_merged(regions: &mut Vec<Region>, next: Region) {
    if let Some(last) = regions.last_mut() {
        let both_empty = last.cached_bytes == 0 && next.cached_bytes == 0;
        let both_full = last.cached_bytes == last.length && next.cached_bytes == next.length;
        if both_empty || both_full {
            last.length += next.length;
            last.cached_bytes += next.cached_bytes;
            return;
        }
    }
    regions.push(next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_regions() {
        let regions = vec![
            Region { offset: 0, length: 100, cached_bytes: 100 },
            Region { offset: 100, length: 100, cached_bytes: 0 },
            Region { offset: 200, length: 100, cached_bytes: 50 },
        ];
        let heisenberg = Heisenberg::default();
        let file = Residency { size: 300, means: Means::Cachestat, regions, heisenberg };
        assert_eq!(file.cached_bytes(), Some(150));
        assert_eq!(file.cached_frac(), Some(0.5));
        assert_eq!(file.cached_within(50, 100), 50);
        assert_eq!(file.cached_within(0, 300), 150);
        assert_eq!(file.cached_within(250, 50), 25);
        assert_eq!(file.cached_within(300, 0), 0);
    }
}
