//! Local time, as libc knows it.

#![allow(unsafe_code, reason = "libc's calendar")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment as a wall clock in this time zone shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i32,
    /// The month, from 1.
    pub month: i32,
    /// The day of the month, from 1.
    pub day: i32,
    /// The hour.
    pub hour: i32,
    /// The minute.
    pub minute: i32,
    /// The second.
    pub second: i32,
}

impl Civil {
    /// What a clock shows at this moment.
    pub fn at(moment: SystemTime) -> Option<Self> {
        let seconds = moment.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let seconds = seconds.try_into().ok()?;
        // SAFETY: a zeroed `tm` is valid, and both live as long as the call.
        let filled = unsafe {
            let mut civil: libc::tm = std::mem::zeroed();
            (!libc::localtime_r(&raw const seconds, &raw mut civil).is_null()).then_some(civil)
        }?;
        Some(Self::from_libc(&filled))
    }

    /// When a clock shows this; `None` for a day that there is not.
    pub fn moment(self) -> Option<SystemTime> {
        let is_time = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        // SAFETY: a zeroed `tm` is valid, and lives as long as the call.
        let (seconds, found) = unsafe {
            let mut civil: libc::tm = std::mem::zeroed();
            civil.tm_year = self.year.checked_sub(1900)?;
            civil.tm_mon = self.month - 1;
            civil.tm_mday = self.day;
            civil.tm_hour = self.hour;
            civil.tm_min = self.minute;
            civil.tm_sec = self.second;
            civil.tm_isdst = -1;
            (libc::mktime(&raw mut civil), Self::from_libc(&civil))
        };
        let is_day = (found.year, found.month, found.day) == (self.year, self.month, self.day);
        let seconds = u64::try_from(seconds).ok().filter(|_| is_time && is_day)?;
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }

    /// The day after, at the same time.
    pub fn tomorrow(self) -> Option<Self> {
        let noon = Self { hour: 12, minute: 0, second: 0, ..self };
        let next = Self::at(noon.moment()?.checked_add(Duration::from_secs(86_400))?)?;
        Some(Self { year: next.year, month: next.month, day: next.day, ..self })
    }

    fn from_libc(civil: &libc::tm) -> Self {
        Self {
            year: civil.tm_year.saturating_add(1900),
            month: civil.tm_mon + 1,
            day: civil.tm_mday,
            hour: civil.tm_hour,
            minute: civil.tm_min,
            second: civil.tm_sec,
        }
    }
}

/// What a clock on the wall shows now, for lines that tell of a time.
pub fn clock() -> String {
    Civil::at(SystemTime::now())
        .map_or_else(String::new, |now| format!("{:02}:{:02}", now.hour, now.minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let now = SystemTime::now();
        let civil = Civil::at(now).unwrap();
        let again = civil.moment().unwrap();
        assert!(now.duration_since(again).unwrap() < Duration::from_secs(1));
        let next = Civil { hour: 12, ..civil }.tomorrow().unwrap();
        let apart = next.moment().unwrap().duration_since(again).unwrap().as_secs();
        assert!((40_000..140_000).contains(&apart), "{apart}");
    }

    #[test]
    fn there_is_no_such_time() {
        let day = Civil { year: 2027, month: 2, day: 28, hour: 6, minute: 0, second: 0 };
        assert!(day.moment().is_some());
        for none in [
            Civil { day: 30, ..day },
            Civil { month: 13, ..day },
            Civil { hour: 24, ..day },
            Civil { minute: 60, ..day },
            Civil { year: i32::MIN, ..day },
        ] {
            assert_eq!(none.moment(), None, "{none:?}");
        }
    }
}
