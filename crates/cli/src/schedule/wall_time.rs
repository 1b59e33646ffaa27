//! Times of the wall clock as people type them, and as systemd.time(7) has them: `22:00`, `+2h`, `2026-11-27 06:00`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use discnice_units::Nanos;

use super::calendar::Civil;

const ACCEPTED: &str = "give a time such as 22:00, \"tomorrow 06:00\", \"2026-11-27 06:00\" or +2h";

/// A time of the wall clock that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime(SystemTime);

impl WallTime {
    /// For how long it has yet to come; nothing once it has come.
    pub fn left(self) -> Duration {
        self.left_at(SystemTime::now())
    }

    /// Whether it has come.
    pub fn has_come(self) -> bool {
        self.left().is_zero()
    }

    fn left_at(self, now: SystemTime) -> Duration {
        self.0.duration_since(now).unwrap_or_default()
    }

    /// Parses what was typed at this moment.
    fn parse(text: &str, now: SystemTime) -> Result<Self, String> {
        if let Some(later) = text.strip_prefix('+') {
            let later: Nanos = later.parse().map_err(|error| format!("{error}"))?;
            let at = now.checked_add(Duration::from_nanos(later.0));
            return at.map(Self).ok_or_else(|| "too late".into());
        }
        let today = Civil::at(now).ok_or("the clock cannot be read")?;
        let mut words = text.split([' ', 'T']).filter(|word| !word.is_empty());
        let all = (words.next(), words.next(), words.next());
        let (day, time) = match all {
            (Some(one), None, None) if one.contains(':') => (None, Some(one)),
            (Some(day), time, None) => (Some(day), time),
            _ => return Err(format!("no time; {ACCEPTED}")),
        };
        let (hour, minute, second) = match time {
            Some(time) => time_of_day(time).ok_or_else(|| no_time(time))?,
            None => (0, 0, 0),
        };
        let at = |day: Civil| Civil { hour, minute, second, ..day }.moment();
        let tomorrow = || today.tomorrow();
        let moment = match day {
            None => at(today).filter(|at| *at > now).or_else(|| at(tomorrow()?)),
            Some("today") => at(today),
            Some("tomorrow") => tomorrow().and_then(at),
            Some(day) => date(day).ok_or_else(|| no_time(day)).map(at)?,
        };
        let moment = moment.ok_or_else(|| format!("there is no such day; {ACCEPTED}"))?;
        if moment <= now {
            return Err(format!("this time is over; {ACCEPTED}"));
        }
        Ok(Self(moment))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(civil) = Civil::at(self.0) else { return f.write_str("a time to come") };
        let Civil { year, month, day, hour, minute, .. } = civil;
        write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

fn no_time(word: &str) -> String {
    format!("{word:?} is no time; {ACCEPTED}")
}

impl FromStr for WallTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, SystemTime::now())
    }
}

/// Hour, minute and second of `6:00`, `06:00` or `06:00:30`.
pub fn time_of_day(text: &str) -> Option<(i32, i32, i32)> {
    let mut parts = text.split(':').map(|part| number(part, 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_time.then_some((hour, minute, second))
}

fn date(text: &str) -> Option<Civil> {
    let mut parts = text.split('-');
    let year = number(parts.next().filter(|year| year.len() == 4)?, 4)?;
    let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let civil = Civil { year, month, day, hour: 0, minute: 0, second: 0 };
    parts.next().is_none().then_some(civil)
}

fn number(text: &str, longest: usize) -> Option<i32> {
    let plain =
        !text.is_empty() && text.len() <= longest && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn noon() -> SystemTime {
        let day = Civil { year: 2026, month: 11, day: 26, hour: 12, minute: 0, second: 0 };
        day.moment().unwrap()
    }

    #[test]
    fn as_systemd_has_them() {
        for (text, seconds) in [
            ("+2h", 2 * HOUR),
            ("+90", 90),
            ("22:00", 10 * HOUR),
            ("22:00:05", 10 * HOUR + 5),
            ("6:00", 18 * HOUR),
            ("06:00", 18 * HOUR),
            ("12:00", 24 * HOUR),
            ("today 13:00", HOUR),
            ("tomorrow 06:00", 18 * HOUR),
            ("tomorrow", 12 * HOUR),
            ("2026-11-27 06:00", 18 * HOUR),
            ("2026-11-27T06:00", 18 * HOUR),
            ("2026-11-28", 36 * HOUR),
        ] {
            let left = WallTime::parse(text, noon()).map(|at| at.left_at(noon()).as_secs());
            assert_eq!(left, Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for (text, why) in [
            ("", "no time"),
            ("soon", "is no time"),
            ("25:00", "is no time"),
            ("12:60", "is no time"),
            ("22", "is no time"),
            ("22:00 23:00", "is no time"),
            ("a b c", "no time"),
            ("+", "not a duration"),
            ("+2 parsecs", "unknown unit"),
            ("+99999999d", "too long"),
            ("today 06:00", "is over"),
            ("2026-11-25 06:00", "is over"),
            ("2026-02-30", "no such day"),
            ("2026-2-30-1", "is no time"),
            ("99999-01-01", "is no time"),
        ] {
            let error = WallTime::parse(text, noon()).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{text:?}: {error}");
        }
    }
}
