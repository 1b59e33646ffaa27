//! The gray toolbox for Python: a timer, statistics, clusters, and the refresh of a directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use discnice_graybox::fldc::refresh::{self as rewriting, RefreshError};
use discnice_graybox::toolbox::{self, Timer};
use pyo3::exceptions::{PyOSError, PyPermissionError};
use pyo3::prelude::*;

/// Nanoseconds since some moment, by the cheapest clock that is fine enough.
#[pyfunction]
pub fn timer() -> u64 {
    static START: LazyLock<Timer> = LazyLock::new(Timer::start);
    START.elapsed().0
}

#[pyfunction]
pub fn median(values: Vec<f64>) -> Option<f64> {
    toolbox::median_of(&values)
}

#[pyfunction]
pub fn correlation(pairs: Vec<(f64, f64)>) -> Option<f64> {
    let mut correlation = toolbox::Correlation::default();
    pairs.iter().for_each(|(x, y)| correlation.push(*x, *y));
    correlation.coefficient()
}

#[pyfunction]
pub fn discard_outliers(mut values: Vec<f64>, limit: f64) -> Vec<f64> {
    toolbox::discard_outliers(&mut values, limit);
    values
}

/// `(values in the low cluster, cut, low mean, high mean, explained share)`.
#[pyfunction]
pub fn cluster(values: Vec<f64>) -> Option<(usize, f64, f64, f64, f64)> {
    toolbox::split(&values).map(|split| {
        (split.low_count, split.cut, split.low_mean, split.high_mean, split.explained_frac)
    })
}

/// Statistics of values that come one at a time.
#[pyclass]
#[derive(Default)]
pub struct Stats(toolbox::Stats);

#[pymethods]
impl Stats {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    #[getter]
    fn deviation(&self) -> f64 {
        self.0.deviation()
    }

    #[getter]
    fn least(&self) -> f64 {
        self.0.min()
    }

    #[getter]
    fn greatest(&self) -> f64 {
        self.0.max()
    }
}

/// `(files, bytes, lines of what was left, lines to look at)`.
type Refreshed = (u64, u64, Vec<String>, Vec<String>);

#[pyfunction]
pub fn refresh(
    py: Python<'_>,
    path: PathBuf,
    dry_run: bool,
    force: bool,
    order: Vec<OsString>,
) -> PyResult<Refreshed> {
    let options = rewriting::Options { dry_run, force, only_better: false, order: &order };
    match py.detach(|| rewriting::refresh(&path, &options, &mut |_, _, _| ())) {
        Ok(report) => Ok((report.files, report.bytes.get(), report.left, report.notes)),
        Err(error) => Err(exception(&path, &error)),
    }
}

/// Returns the exception for an error.
fn exception(dir: &Path, error: &RefreshError) -> PyErr {
    match error {
        RefreshError::Io { action, path, error } => {
            let text = format!("cannot {action}: {error}");
            PyOSError::new_err((error.raw_os_error(), text, path.clone()))
        }
        error if matches!(error.cause(), RefreshError::Refused(_)) => {
            let name = dir.as_os_str().to_owned();
            PyPermissionError::new_err((libc::EPERM, error.to_string(), name))
        }
        error => PyOSError::new_err(error.to_string()),
    }
}
