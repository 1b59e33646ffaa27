//! The gray toolbox (gray-box paper, section 5), for layers of the caller's own: a timer, statistics, clusters,
//! and the refresh of a directory.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;
use std::sync::LazyLock;

use discnice_graybox::fldc::refresh::{Options, RefreshError, refresh};
use discnice_graybox::toolbox::{Correlation, Timer, discard_outliers, median_of, split};

//= gray-box/5-timer
/// Nanoseconds since some moment of this process, by the cheapest clock that is fine enough: the processor's
/// time stamp counter where the kernel trusts it. Only differences mean something.
#[unsafe(no_mangle)]
pub extern "C" fn discnice_timer_nanos() -> u64 {
    static START: LazyLock<Timer> = LazyLock::new(Timer::start);
    START.elapsed().0
}

/// Statistics of values that come one at a time, in constant space. All zero before the first.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DiscniceStats {
    /// How many values there were.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of the squares of their differences from the mean.
    pub squares: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

//= gray-box/5-statistics
/// Takes in one more value. Nothing happens for a null pointer.
///
/// # Safety
/// `stats` is null or points to statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_stats_push(stats: *mut DiscniceStats, value: f64) {
    // SAFETY: null, or the caller promises statistics.
    let Some(stats) = (unsafe { stats.as_mut() }) else { return };
    if stats.count == 0 {
        (stats.least, stats.greatest) = (value, value);
    }
    stats.count += 1;
    let from_old = value - stats.mean;
    stats.mean += from_old / stats.count as f64;
    stats.squares += from_old * (value - stats.mean);
    stats.least = stats.least.min(value);
    stats.greatest = stats.greatest.max(value);
}

/// The sample standard deviation; 0 of fewer than two values and of a null pointer.
///
/// # Safety
/// `stats` is null or points to statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_stats_deviation(stats: *const DiscniceStats) -> f64 {
    // SAFETY: null, or the caller promises statistics.
    match unsafe { stats.as_ref() } {
        Some(stats) if stats.count > 1 => (stats.squares / (stats.count - 1) as f64).sqrt(),
        _ => 0.0,
    }
}

/// The median of `count` values; not a number of none.
///
/// # Safety
/// `values` points to `count` readable doubles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_median(values: *const f64, count: usize) -> f64 {
    // SAFETY: the caller promises `count` doubles.
    unsafe { read(values, count) }.and_then(median_of).unwrap_or(f64::NAN)
}

/// Pearson's correlation of `count` pairs, from -1 to 1; not a number if one side never varies.
///
/// # Safety
/// `x` and `y` point to `count` readable doubles each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_correlation(x: *const f64, y: *const f64, count: usize) -> f64 {
    // SAFETY: the caller promises `count` doubles in both.
    let (Some(x), Some(y)) = (unsafe { (read(x, count), read(y, count)) }) else { return f64::NAN };
    let mut correlation = Correlation::default();
    x.iter().zip(y).for_each(|(x, y)| correlation.push(*x, *y));
    correlation.coefficient().unwrap_or(f64::NAN)
}

/// Leaves in `values` those within `limit` scaled median absolute deviations of the median, in their order, and
/// returns how many they are. With normal noise, 3 keeps 99.7 %.
///
/// # Safety
/// `values` points to `count` doubles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_discard_outliers(
    values: *mut f64,
    count: usize,
    limit: f64,
) -> usize {
    // SAFETY: the caller promises `count` doubles.
    let Some(given) = (unsafe { read(values, count) }) else { return 0 };
    let mut kept = given.to_vec();
    discard_outliers(&mut kept, limit);
    for (at, value) in kept.iter().enumerate() {
        // SAFETY: no more are kept than were given.
        unsafe { values.add(at).write(*value) };
    }
    kept.len()
}

/// Two clusters of values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DiscniceSplit {
    /// How many values are in the low one; neither is empty.
    pub low_count: usize,
    /// Values at or below this are in the low one.
    pub cut: f64,
    /// Mean of the low one.
    pub low_mean: f64,
    /// Mean of the high one.
    pub high_mean: f64,
    /// Share of the variance that the split explains. Noise of a single cluster explains about two thirds.
    pub explained_frac: f64,
}

//= gray-box/5-clusters
/// Splits `count` values into two clusters with the least variance within. Returns true and writes the
/// split if there are two different values.
///
/// # Safety
/// `values` points to `count` readable doubles, `found` to a split's room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_cluster(
    values: *const f64,
    count: usize,
    found: *mut DiscniceSplit,
) -> bool {
    // SAFETY: the caller promises `count` doubles.
    let Some(split) = (unsafe { read(values, count) }).and_then(split) else { return false };
    if found.is_null() {
        return false;
    }
    let told = DiscniceSplit {
        low_count: split.low_count,
        cut: split.cut,
        low_mean: split.low_mean,
        high_mean: split.high_mean,
        explained_frac: split.explained_frac,
    };
    // SAFETY: not null, and the caller promises room.
    unsafe { found.write(told) };
    true
}

/// What a refresh did, or would do.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DiscniceRefreshed {
    /// Files rewritten.
    pub files: u64,
    /// Bytes that they take on the disk.
    pub bytes: u64,
    /// Members that were left as they are.
    pub left: u64,
    /// Something that another program changed meanwhile is kept beside the directory.
    pub kept: bool,
}

/// Only says what would be done.
pub const DISCNICE_REFRESH_DRY_RUN: c_int = 1;
/// Also separates files with one name inside from their hard links outside, and takes files of which it cannot be
/// told whether they are in use.
pub const DISCNICE_REFRESH_FORCE: c_int = 2;

//= gray-box/5-refresh
/// Rewrites the files of a directory and all below it in layout order, as `discnice refresh` does. The directory
/// is complete at every moment. `flags` are `DISCNICE_REFRESH_DRY_RUN` and `DISCNICE_REFRESH_FORCE`.
///
/// Returns 0, and writes to `*report` unless that is null, or the negative of an errno(3) number: `EPERM` if the
/// directory must not be refreshed (`discnice refresh --dry-run` says why), `EIO` if a copy differed.
///
/// # Safety
/// `path` is null or points to a text that ends in a zero byte; `report` is null or points to a report's room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn discnice_refresh(
    path: *const c_char,
    flags: c_int,
    report: *mut DiscniceRefreshed,
) -> c_int {
    if path.is_null() || flags & !(DISCNICE_REFRESH_DRY_RUN | DISCNICE_REFRESH_FORCE) != 0 {
        return -libc::EINVAL;
    }
    // SAFETY: not null, and the caller promises a terminated text.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let options = Options {
        dry_run: flags & DISCNICE_REFRESH_DRY_RUN != 0,
        force: flags & DISCNICE_REFRESH_FORCE != 0,
        ..Options::default()
    };
    let done = match refresh(path, &options, &mut |_, _, _| ()) {
        Ok(done) => done,
        Err(error) => return -number(error.cause()),
    };
    if !report.is_null() {
        let left = done.left.len() as u64;
        let told =
            DiscniceRefreshed { files: done.files, bytes: done.bytes.get(), left, kept: done.kept };
        // SAFETY: not null, and the caller promises room.
        unsafe { report.write(told) };
    }
    0
}

/// Returns the error number that tells of an error.
fn number(error: &RefreshError) -> c_int {
    match error {
        RefreshError::Refused(_) => libc::EPERM,
        RefreshError::Io { error, .. } => error.raw_os_error().unwrap_or(libc::EIO),
        RefreshError::Differs(_) | RefreshError::Noted { .. } => libc::EIO,
    }
}

/// The values; `None` for a null pointer.
///
/// # Safety
/// `values` is null or points to `count` readable doubles, which do not change meanwhile.
unsafe fn read<'a>(values: *const f64, count: usize) -> Option<&'a [f64]> {
    // SAFETY: not null, and the caller promises `count` doubles.
    (!values.is_null()).then(|| unsafe { slice::from_raw_parts(values, count) })
}
