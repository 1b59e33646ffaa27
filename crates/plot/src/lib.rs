//! Plots as SVG 1.1, without scripts or outside fonts: what measurements and reports look like.
//!
//! - [`plot`]: what a plot shows, apart from how it is drawn;
//! - [`svg`]: how it is drawn;
//! - [`html`]: the page that plots and tables stand on;
//! - `axis`: round marks;
//! - [`quantile`]: the summary that box plots show.

#![forbid(unsafe_code)]

mod axis;
pub mod html;
pub mod plot;
pub mod svg;

pub use plot::{Cell, Chart, Heat, Plot, Series};

/// The value at `share` (0 to 1) of the sorted numbers, between neighbours in proportion.
///
/// `None` for no numbers.
#[must_use]
pub fn quantile(numbers: &[f64], share: f64) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - place.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Some(2.0));
    }
}
