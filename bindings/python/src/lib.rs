//! The extension module `discnice._discnice`: the Rust API, one function each. What is comfortable in
//! Python is written in Python, in `python/discnice/__init__.py`.

mod graybox;
mod toolbox;

use discnice_progress::model::{Parameter, Setting};
use discnice_progress::testpoint::{NotSet, Outcome, testpoint_until};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Reports cumulative counters; returns `(outcome, seconds waited)`. Other Python threads run
/// meanwhile. What a signal's handler raises ends the wait.
#[pyfunction]
fn testpoint(py: Python<'_>, index: u32, metrics: Vec<f64>) -> PyResult<(&'static str, f64)> {
    let mut raised = None;
    let outcome = py.detach(|| {
        testpoint_until(index, &metrics, &mut || {
            let look = || Python::try_attach(|py| py.check_signals().err()).flatten();
            raised = raised.take().or_else(look);
            raised.is_some()
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    Ok(match outcome {
        Outcome::TooSoon => ("too soon", 0.0),
        Outcome::Went(_) => ("went", 0.0),
        Outcome::Suspended(time) => ("suspended", time.as_secs_f64()),
        Outcome::Held(time) => ("held", time.as_secs_f64()),
        Outcome::Skipped(_) => ("skipped", 0.0),
    })
}

/// Sets parameters of the regulation by name, once and before the first testpoint.
#[pyfunction]
fn configure(settings: Vec<(String, f64)>) -> PyResult<()> {
    let bad = |error: &dyn std::error::Error| PyValueError::new_err(error.to_string());
    let settings = settings.into_iter().map(|(name, value)| {
        let parameter = Parameter::named(&name).map_err(|error| bad(&error))?;
        Ok(Setting { parameter, value })
    });
    let settings = settings.collect::<PyResult<Vec<_>>>()?;
    discnice_progress::testpoint::set(&settings).map_err(|error| match error {
        NotSet::Bad(error) => bad(&error),
        NotSet::TooLate => PyRuntimeError::new_err(error.to_string()),
    })
}

#[pyfunction]
fn set_priority(priority: u32) -> PyResult<()> {
    if priority == 0 {
        return Err(PyValueError::new_err("priority must be at least 1"));
    }
    discnice_progress::testpoint::set_priority(priority);
    Ok(())
}

#[pyfunction]
fn set_resources(bits: u64) {
    discnice_progress::testpoint::set_resources(bits);
}

#[pyfunction]
fn set_critical(critical: bool) {
    discnice_progress::testpoint::set_critical(critical);
}

#[pyfunction]
fn set_job_name(py: Python<'_>, name: &str) {
    py.detach(|| discnice_progress::testpoint::set_job_name(name));
}

#[pyfunction]
fn flush(py: Python<'_>) {
    py.detach(discnice_progress::testpoint::flush);
}

#[pyfunction]
fn notices() -> Vec<String> {
    discnice_progress::testpoint::notices()
}

#[pymodule]
fn _discnice(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(testpoint, module)?)?;
    module.add_function(wrap_pyfunction!(configure, module)?)?;
    module.add_function(wrap_pyfunction!(set_priority, module)?)?;
    module.add_function(wrap_pyfunction!(set_resources, module)?)?;
    module.add_function(wrap_pyfunction!(set_critical, module)?)?;
    module.add_function(wrap_pyfunction!(set_job_name, module)?)?;
    module.add_function(wrap_pyfunction!(flush, module)?)?;
    module.add_function(wrap_pyfunction!(notices, module)?)?;
    module.add_function(wrap_pyfunction!(graybox::residency, module)?)?;
    module.add_function(wrap_pyfunction!(graybox::order, module)?)?;
    module.add_function(wrap_pyfunction!(graybox::plan, module)?)?;
    module.add_function(wrap_pyfunction!(graybox::order_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(graybox::gb_alloc, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::timer, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::median, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::correlation, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::discard_outliers, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::cluster, module)?)?;
    module.add_function(wrap_pyfunction!(toolbox::refresh, module)?)?;
    module.add_class::<toolbox::Stats>()?;
    module.add_class::<graybox::Grant>()
}
