//! Prediction against account, for machines.

use discnice_estimator::file_systems::Compared;
use discnice_estimator::{CallKind, FileSystem};
use discnice_ledger::Class;
use serde::Serialize;

/// What the disk was predicted to do and what the kernel charged, in bytes since the class was made.
/// `error_frac` is the difference as a part of the account; `null` without an account.
#[derive(Debug, Serialize)]
pub struct PredictionReport {
    /// Source of charges: `auto`, `predict` or `account`.
    estimator: &'static str,
    /// Less what was taken back because it was deleted before it was written.
    predicted_bytes: u64,
    account_bytes: u64,
    file_systems: Vec<FileSystemReport>,
}

/// One file system.
#[derive(Debug, Serialize)]
struct FileSystemReport {
    /// `MAJOR:MINOR`; `null` for what could not be put down to one.
    device: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Whether its account can be believed: `undecided`, `accounted` or `silent`.
    account: &'static str,
    /// What the files that were made cost the disk beside all that (journal, inode tables), as the
    /// host profile knows: beside their data, and beside the account, of which a prediction has
    /// all. Not charged to any process.
    file_overhead_bytes: u64,
    file_uncharged_bytes: u64,
    calls: Vec<CallReport>,
}

/// One kind of call.
#[derive(Debug, Serialize)]
struct CallReport {
    kind: &'static str,
    /// Before anything was taken back.
    predicted_bytes: u64,
    credited_bytes: u64,
    account_bytes: u64,
    error_frac: Option<f64>,
}

impl PredictionReport {
    /// That of a class.
    pub fn of(class: &Class) -> Self {
        let (estimation, totals) = (class.estimation(), class.prediction());
        Self {
            estimator: estimation.estimator().name(),
            predicted_bytes: totals.predicted,
            account_bytes: totals.account,
            file_systems: estimation.file_systems().iter().map(FileSystemReport::of).collect(),
        }
    }
}

impl FileSystemReport {
    fn of(fs: &FileSystem) -> Self {
        let device = fs.device();
        let calls = CallKind::ALL.into_iter().filter_map(|(kind, which)| {
            let compared = fs.compared(which);
            (compared != Compared::default()).then(|| CallReport::of(kind, compared))
        });
        Self {
            device: device
                .map(|dev| format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev))),
            kind: device.map(discnice_graybox::profile::file_system),
            account: fs.verdict().name(),
            file_overhead_bytes: fs.overhead().0,
            file_uncharged_bytes: fs.overhead().1,
            calls: calls.collect(),
        }
    }
}

impl CallReport {
    fn of(kind: &'static str, compared: Compared) -> Self {
        let Compared { predicted, account, credited } = compared;
        let error = (predicted as f64 - account as f64) / account as f64;
        Self {
            kind,
            predicted_bytes: predicted,
            credited_bytes: credited,
            account_bytes: account,
            error_frac: (account > 0).then_some(error),
        }
    }
}
