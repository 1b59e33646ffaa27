//! Printing for people: about three significant places, binary units.

use core::fmt;

use crate::{Bytes, Nanos, Rate};

const STEPS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.get() as f64;
        let mut step = 0;
        // By what is printed: 1023.9 KiB are printed as 1.0 MiB, and 99.99 KiB as 100 KiB.
        while value >= 1023.5 && step + 1 < STEPS.len() {
            value /= 1024.0;
            step += 1;
        }
        if step == 0 || value >= 99.95 || value % 1.0 == 0.0 {
            write!(f, "{value:.0} {}", STEPS[step])
        } else {
            write!(f, "{value:.1} {}", STEPS[step])
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            f.write_str("unlimited")
        } else {
            write!(f, "{}/s", Bytes::new(self.get()))
        }
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000 => write!(f, "{n} ns"),
            n if n < 1_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n if n < 1_000_000_000 => write!(f, "{:.1} ms", n as f64 / 1e6),
            n if n < 59_995_000_000 => write!(f, "{:.2} s", n as f64 / 1e9),
            n => long(f, n.saturating_add(500_000_000) / 1_000_000_000),
        }
    }
}

/// A time from a minute on, in the two largest of its units.
fn long(f: &mut fmt::Formatter<'_>, seconds: u64) -> fmt::Result {
    let (count, small, parts, large) = match seconds {
        0..3_600 => (seconds, "s", 60, "min"),
        3_600..86_400 => (seconds / 60, "min", 60, "h"),
        _ => (seconds / 3_600, "h", 24, "d"),
    };
    match count % parts {
        0 => write!(f, "{} {large}", count / parts),
        rest => write!(f, "{} {large} {rest} {small}", count / parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_it() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            ((1 << 20) - 513, "1023 KiB"),
            ((100 << 20) - 1, "100 MiB"),
            ((1 << 50) - 1, "1024 TiB"),
            (5 << 20, "5 MiB"),
            (3 << 40, "3 TiB"),
        ] {
            assert_eq!(Bytes::new(bytes).to_string(), text);
        }
        assert_eq!(Rate::per_second(5 << 20).to_string(), "5 MiB/s");
        assert_eq!(Rate::UNLIMITED.to_string(), "unlimited");
        assert_eq!(Nanos(1_500_000).to_string(), "1.5 ms");
    }

    #[test]
    fn long_times_have_two_units() {
        let told = |millis| Nanos::from_millis(millis).to_string();
        assert_eq!([told(59_990), told(59_999), told(61_400)], ["59.99 s", "1 min", "1 min 1 s"]);
        assert_eq!([told(3_599_600), told(5_400_000)], ["1 h", "1 h 30 min"]);
        assert_eq!([told(86_400_000), told(100_000_000)], ["1 d", "1 d 3 h"]);
        assert_eq!(Nanos(u64::MAX).to_string(), "213503 d 23 h");
    }
}
