//! Regions by counting: halving with cachestat, one pass with mincore.

use discnice_units::Bytes;

use crate::pagecache::{Means, Oracle, mincore, page_size};

use super::regions::{Region, push_merged};

/// The regions of a file at a resolution of `grain`; `None` if the means went away.
pub fn regions(
    fd: i32,
    oracle: &mut Oracle,
    size: Bytes,
    grain: Bytes,
) -> Option<(Means, Vec<Region>)> {
    let (size, grain) = (size.get(), grain.get());
    let mut regions = Vec::new();
    if size == 0 {
        return Some((Means::Cachestat, regions));
    }
    let (pages, means) = oracle.cached_pages(0, size)?;
    let whole = region(0, size, pages);
    if whole.cached_bytes == 0 || whole.cached_bytes == size {
        regions.push(whole);
    } else if means == Means::Mincore {
        by_mincore(fd, size, grain, &mut regions)?;
    } else {
        halve(oracle, whole, grain, &mut regions)?;
    }
    Some((means, regions))
}

fn region(offset: u64, length: u64, pages: u64) -> Region {
    Region { offset, length, cached_bytes: (pages * page_size()).min(length) }
}

/// A count of 0 or of everything settles a range; any other is asked about in halves. Ranges end
/// on multiples of `grain`, so that neighbours never count the same page.
fn halve(oracle: &mut Oracle, part: Region, grain: u64, out: &mut Vec<Region>) -> Option<()> {
    let settled = part.cached_bytes == 0 || part.cached_bytes == part.length;
    if settled || part.length <= grain {
        push_merged(out, part);
        return Some(());
    }
    let low_length = (part.length.div_ceil(2)).next_multiple_of(grain).min(part.length);
    let high_length = part.length - low_length;
    let (low_pages, _) = oracle.cached_pages(part.offset, low_length)?;
    halve(oracle, region(part.offset, low_length, low_pages), grain, out)?;
    if high_length > 0 {
        let offset = part.offset + low_length;
        let (high_pages, _) = oracle.cached_pages(offset, high_length)?;
        halve(oracle, region(offset, high_length, high_pages), grain, out)?;
    }
    Some(())
}

//= gray-box/4.1.1-mincore
fn by_mincore(fd: i32, size: u64, grain: u64, out: &mut Vec<Region>) -> Option<()> {
    let mut current = region(0, 0, 0);
    let mut pages = 0;
    mincore(fd, 0, size, |offset, resident| {
        if offset - current.offset >= grain {
            push_merged(out, region(current.offset, offset - current.offset, pages));
            current.offset = offset;
            pages = 0;
        }
        pages += u64::from(resident);
    })
    .ok()?;
    push_merged(out, region(current.offset, size - current.offset, pages));
    Some(())
}
