//! What the kernel hides, for Python: cache, layout, free memory.

use std::ffi::OsString;
use std::path::PathBuf;

use discnice_graybox::order::{By, Names, Plan, PlanOptions, rank};
use discnice_graybox::{fccd, input, mac};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// `(size, means, [(offset, length, cached bytes)], pages that probing brought in)`.
type Found = (u64, &'static str, Vec<(u64, u64, u64)>, u64);

#[pyfunction]
pub fn residency(py: Python<'_>, path: PathBuf, unit: Option<u64>) -> PyResult<Found> {
    let options = fccd::Options { prediction_unit: unit, ..fccd::Options::default() };
    let found = py.detach(|| {
        let (file, _) = input::open(&path).map_err(|error| with_name(&path, error))?;
        Ok::<_, PyErr>(fccd::residency(&file, &options)?)
    })?;
    let regions = found.regions.iter().map(|region| {
        (region.offset, region.length, region.cached_bytes)
    });
    Ok((found.size, found.means.name(), regions.collect(), found.heisenberg.pages_read))
}

/// As Python's own functions: the subclass of OSError that the number asks for, with the file.
fn with_name(path: &std::path::Path, error: input::InputError) -> PyErr {
    let number = match &error {
        input::InputError::IsDirectory => Some(libc::EISDIR),
        input::InputError::NotRegular => Some(libc::EINVAL),
        input::InputError::Io(error) => error.raw_os_error(),
    };
    // A string, as Python has there, not the Path that a PathBuf would become.
    PyOSError::new_err((number, error.to_string(), path.as_os_str().to_owned()))
}

/// Indices of the paths, best first; those that cannot be looked at are left out.
#[pyfunction]
pub fn order(py: Python<'_>, paths: Vec<OsString>, by: &str) -> PyResult<Vec<u32>> {
    let by = match by {
        "cached" => By::Cached,
        "layout" => By::Layout,
        "compose" => By::Compose,
        _ => return Err(PyValueError::new_err("by must be cached, layout or compose")),
    };
    let mut names = Names::default();
    paths.iter().for_each(|path| names.push(path));
    Ok(py.detach(|| rank(&names, by, &mut |_, _| ()).order))
}

/// `(index of the path, offset, length, cached bytes)`, best first.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    paths: Vec<OsString>,
    unit: Option<u64>,
    align: u64,
) -> Vec<(u32, u64, u64, u64)> {
    let mut names = Names::default();
    paths.iter().for_each(|path| names.push(path));
    let options = PlanOptions { access_unit: unit, align };
    let unit_of = discnice_graybox::profile::access_unit;
    let found =
        py.detach(|| discnice_graybox::order::plan(&names, &options, &unit_of, &mut |_, _| ()));
    told(&found)
}

/// Pieces of the caller's, `(index of the path, offset, length)`, in best order and with their cached bytes.
#[pyfunction]
pub fn order_pieces(
    py: Python<'_>,
    paths: Vec<OsString>,
    wanted: Vec<(u32, u64, u64)>,
) -> Vec<(u32, u64, u64, u64)> {
    let mut names = Names::default();
    paths.iter().for_each(|path| names.push(path));
    told(&py.detach(|| discnice_graybox::order::order_pieces(&names, &wanted, &mut |_, _| ())))
}

fn told(plan: &Plan) -> Vec<(u32, u64, u64, u64)> {
    let pieces = plan.pieces.iter();
    pieces.map(|piece| (piece.file, piece.offset, piece.length, piece.cached_bytes)).collect()
}

/// Memory that was there when it was allocated; given back with the object.
#[pyclass]
pub struct Grant(mac::Grant);

#[pymethods]
impl Grant {
    #[getter]
    fn address(&self) -> usize {
        self.0.start().as_ptr() as usize
    }

    #[getter]
    fn length(&self) -> u64 {
        self.0.length()
    }
}

#[pyfunction]
pub fn gb_alloc(py: Python<'_>, min: u64, max: u64, multiple: u64) -> PyResult<Option<Grant>> {
    let grant = py.detach(|| mac::gb_alloc(min, max, multiple));
    match grant {
        Ok(grant) => Ok(grant.map(Grant)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            Err(PyValueError::new_err(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
