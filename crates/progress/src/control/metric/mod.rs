//! Progress as seen from outside (MS Manners, section 7.2).
//!
//! | specification | what it counts |
//! |---|---|
//! | `cpu` | processor seconds of the job's processes |
//! | `bytes` | bytes that they read and wrote, cached or not (rchar + wchar of `/proc/PID/io`) |
//! | `read`, `written` | bytes that they caused the disk to read, and to write some time |
//! | `operations` | read and write calls |
//! | `faults` | page faults |
//! | `position:PATH` | how far they are in PATH (the `pos` of `/proc/PID/fdinfo`) |
//! | `lines:PATH` | lines written to PATH since the start |
//! | `match:PATH:REGEX` | the number in the last match's first group, or without a group the count of matches |
//! | `terminal` | what progress bars on the command's terminal advance, in per cent; only of a command that `run` starts |
//! | `progress:PATH` | the same of what is written to PATH |
//! | `openmetrics:SOURCE#NAME` | the samples of NAME, added up, in a file or at an `http://` address |
//!
//! `PHASE@` before any of them has it count only in the phase of this name ([`crate::control::phase`]).

pub(crate) mod account;
mod bar;
mod log;
mod openmetrics;
mod position;
mod source;
pub mod terminal;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use log::Log;
pub use source::Source;
pub(crate) use source::open_file;

/// One kind of progress, as specified by a person.
#[derive(Debug, Clone)]
pub struct Metric {
    text: String,
    /// The only phase that it is of.
    phase: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Account(account::What),
    Position(PathBuf),
    Lines(PathBuf),
    Match(PathBuf, regex::bytes::Regex),
    Progress(PathBuf),
    Terminal,
    OpenMetrics(openmetrics::Place, String),
}

impl Metric {
    //= ms-manners/3-metric-needed
    /// The default combination: processor time and bytes read and written. Together they follow
    /// what computes, what reads and writes, and what does both in turn.
    #[must_use]
    pub fn default_set() -> Vec<Self> {
        ["cpu", "bytes"].iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Returns the metric with absolute paths, independent of this process's working directory.
    ///
    /// # Errors
    /// As getcwd(3).
    pub fn absolute(mut self) -> io::Result<Self> {
        let (Kind::Position(path)
        | Kind::Lines(path)
        | Kind::Match(path, _)
        | Kind::Progress(path)
        | Kind::OpenMetrics(openmetrics::Place::File(path), _)) = &mut self.kind
        else {
            return Ok(self);
        };
        let absolute = std::path::absolute(&*path)?;
        self.text = self.text.replacen(&*path.to_string_lossy(), &absolute.to_string_lossy(), 1);
        *path = absolute;
        Ok(self)
    }

    /// Whether it needs the terminal of a command that this program starts.
    #[must_use]
    pub fn needs_terminal(&self) -> bool {
        matches!(self.kind, Kind::Terminal)
    }

    /// The only phase in which it counts.
    #[must_use]
    pub fn phase(&self) -> Option<&str> {
        self.phase.as_deref()
    }

    /// Starts reading this metric.
    #[must_use]
    pub fn open(&self) -> Box<dyn Source> {
        match &self.kind {
            Kind::Account(what) => Box::new(account::Account::new(*what)),
            Kind::Position(path) => Box::new(position::Position::new(path.clone())),
            Kind::Lines(path) => Box::new(log::Log::lines(path.clone())),
            Kind::Match(path, regex) => Box::new(log::Log::matches(path.clone(), regex.clone())),
            Kind::Progress(path) => Box::new(log::Bars::new(path.clone())),
            Kind::Terminal => Box::new(terminal::Terminal),
            Kind::OpenMetrics(place, name) => {
                Box::new(openmetrics::Endpoint::new(place.clone(), name.clone()))
            }
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseMetricError(String);

impl fmt::Display for ParseMetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseMetricError {}

/// What may be typed, for error messages.
const ACCEPTED: &str = "give cpu, bytes, read, written, operations, faults, position:PATH, lines:PATH, \
     match:PATH:REGEX, progress:PATH, terminal or openmetrics:SOURCE#NAME, each with PHASE@ before it or not";

impl FromStr for Metric {
    type Err = ParseMetricError;

    //= ms-manners/5-coverage
    fn from_str(text: &str) -> Result<Self, ParseMetricError> {
        let wrong = |why: &str| ParseMetricError(format!("{why}; {ACCEPTED}"));
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
            !name.is_empty() && name.chars().all(is_part)
        };
        let named = text.split_once('@').filter(|(name, _)| is_name(name));
        let (phase, spec) =
            named.map_or((None, text), |(name, rest)| (Some(name.to_owned()), rest));
        let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
        if let Some(what) = account::What::named(kind).filter(|_| rest.is_empty()) {
            return Ok(Self { text: text.into(), phase, kind: Kind::Account(what) });
        }
        if spec == "terminal" {
            return Ok(Self { text: text.into(), phase, kind: Kind::Terminal });
        }
        if rest.is_empty() {
            return Err(wrong("unknown metric, or its path is missing"));
        }
        let kind = match kind {
            "position" => Kind::Position(rest.into()),
            "lines" => Kind::Lines(rest.into()),
            "progress" => Kind::Progress(rest.into()),
            "match" => {
                let (path, regex) =
                    rest.split_once(':').ok_or_else(|| wrong("match needs a path and a regex"))?;
                let regex = regex::bytes::Regex::new(regex).map_err(|error| {
                    ParseMetricError(format!("bad regular expression: {error}"))
                })?;
                Kind::Match(path.into(), regex)
            }
            "openmetrics" => {
                let (place, name) = rest
                    .rsplit_once('#')
                    .filter(|(place, name)| !place.is_empty() && !name.is_empty())
                    .ok_or_else(|| wrong("openmetrics needs SOURCE#NAME"))?;
                let place = place.parse().map_err(ParseMetricError)?;
                Kind::OpenMetrics(place, name.into())
            }
            _ => return Err(wrong("unknown metric")),
        };
        Ok(Self { text: text.into(), phase, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ms-manners/5-coverage
    #[test]
    fn what_is_accepted_and_refused() {
        for good in [
            "cpu",
            "bytes",
            "read",
            "written",
            "operations",
            "faults",
            "position:/var/tmp/a:b",
            "lines:log",
            "progress:log",
            "terminal",
            "mark-1@lines:log",
            r"match:/tmp/log:(\d+) files",
            "openmetrics:/run/m.prom#done_total",
            "openmetrics:http://localhost:9100/metrics#done_total",
        ] {
            assert_eq!(good.parse::<Metric>().map(|m| m.to_string()), Ok(good.into()));
        }
        let here = std::env::current_dir().unwrap();
        let text = |text: &str| text.parse::<Metric>().unwrap().absolute().unwrap().to_string();
        assert_eq!(text("lines:log"), format!("lines:{}", here.join("log").display()));
        assert_eq!(text("match:/log:l(o)g"), "match:/log:l(o)g");
        assert_eq!(text("cpu"), "cpu");
        assert_eq!(text("openmetrics:http://a/b#c"), "openmetrics:http://a/b#c");
        for bad in [
            "",
            "speed",
            "cpu:x",
            "@cpu",
            "a b@cpu",
            "mark@",
            "position:",
            "progress:",
            "terminal:1",
            "match:log",
            "match:log:(",
            "openmetrics:x",
            "openmetrics:https://x/#a",
        ] {
            assert!(bad.parse::<Metric>().is_err(), "{bad}");
        }
    }
}
