//! Progress-based regulation of a job of low importance ("MS Manners", Douceur and Bolosky 1999).
//!
//! A job reports its progress at *testpoints*. The [`calibrator`] learns from them how long the
//! progress takes on an otherwise idle machine (the *target*); the [`comparator`] judges
//! whether the job now lags behind its target; [`suspension`] says for how long a lagging job
//! steps aside. No resource is named anywhere, so contention for any of them is noticed.
//!
//! Everything here is pure: moments, durations and numbers go in, verdicts come out. Nothing
//! sleeps, reads a clock or opens a file, so tests run hours of regulation in milliseconds.
//!
//! | module | paper | what it decides |
//! |---|---|---|
//! | [`binomial`], [`comparator`] | 4.2, 6.1 | is the progress rate good, poor, or not yet known |
//! | [`ridge`], [`calibrator`] | 4.3, 4.4, 6.2, 6.3 | how long this much progress should take |
//! | `usual` | beyond the paper | how much of a testpoint to learn from |
//! | [`windows`], [`quiet`] | beyond the paper | calibrating under load; waking when a load ends |
//! | [`suspension`] | 4.1 | how long to step aside |
//! | [`regulator`] | 4, 7.1 | all of it together for one thread |
//! | [`superintendent`] | 4.5, 7.1 | which thread may run |
//! | [`sequential`] | 11 | has it become slower: by ranks, with a bound for false alarms |
//! | [`settings`] | 4, 6 | what users may set |
//! | [`polling`] | 7.2 | how often to look at a job from outside |
//!
//! ```
//! use discnice_progress::model::{Config, Others, Regulator, Targets, Testpoint, Verdict};
//! use discnice_units::{Moment, Nanos};
//!
//! let config = Config::default();
//! let mut targets = Targets::default();
//! let mut regulator = Regulator::new(&config);
//! // One megabyte was hashed since the start; the machine was quiet.
//! let at = Moment::FIRST.plus(Nanos::SECOND);
//! let call = Testpoint { at, index: 0, metrics: &[1e6], others: Others::Unknown };
//! assert!(matches!(regulator.testpoint(&mut targets, &call), Verdict::Skipped(_)));
//! ```
#![forbid(unsafe_code)]

pub mod binomial;
pub mod calibrator;
pub mod comparator;
pub mod config;
mod pending;
pub mod polling;
pub mod quiet;
pub mod regulator;
pub mod ridge;
pub mod sequential;
pub mod settings;
pub mod superintendent;
pub mod suspension;
pub mod targets;
mod usual;
pub mod windows;

pub use calibrator::Calibrator;
pub use comparator::{Comparator, Judgment};
pub use config::{Calibration, Config, InvalidConfig};
pub use quiet::{Others, QuietDetector, Signals};
pub use regulator::{Regulator, Skip, Testpoint, Verdict};
pub use settings::{BadSetting, Parameter, Setting};
pub use suspension::Suspension;
pub use targets::Targets;
