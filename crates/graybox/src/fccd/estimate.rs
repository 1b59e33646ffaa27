//! An estimate by counting: an order needs no more.

use discnice_units::Bytes;

use crate::pagecache::{Oracle, page_size};

/// Windows that speak for a large file, and bytes in each.
const WINDOWS: u64 = 32;
const WINDOW: u64 = 32 << 10;

/// The cached part of a file of `size` bytes, at most 1, by an exact means: of all of it, or of
/// windows spread over it if it is large, because counting takes time with every page. `None` where
/// no exact means is honest.
pub fn estimate(oracle: &mut Oracle, size: Bytes) -> Option<f64> {
    let size = size.get();
    if size <= WINDOWS * WINDOW * 2 {
        let (pages, _) = oracle.cached_pages(0, size)?;
        return Some((pages as f64 / size.div_ceil(page_size()) as f64).min(1.0));
    }
    let stride = size / WINDOWS;
    let mut bytes = 0;
    for index in 0..WINDOWS {
        // At random, so that no regular pattern of reading looks all cached or not at all.
        let start = index * stride + fastrand::u64(0..=stride - WINDOW);
        let start = start / page_size() * page_size();
        let (pages, _) = oracle.cached_pages(start, WINDOW)?;
        bytes += (pages * page_size()).min(WINDOW);
    }
    Some(bytes as f64 / (WINDOWS * WINDOW) as f64)
}
