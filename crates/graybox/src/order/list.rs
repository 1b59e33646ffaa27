//! Lists files in best order, window by window, so that a stream without end needs bounded memory.

use std::io::{self, BufRead, Write};
use std::path::Path;

use discnice_escape::Foreign;

use super::error::OrderError;
use super::names::{Delimiter, Names};
use super::rank::{By, rank};
use crate::input::InputError;

/// How to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOptions {
    /// What the order is good for.
    pub by: By,
    /// What ends a name, in and out.
    pub delimiter: Delimiter,
    /// Names ordered together; 0 counts as 1.
    pub window: usize,
    /// Names are shown to a person: what a terminal would obey stands in them as an escape. Programs get each byte
    /// as it is.
    pub visible: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { by: By::default(), delimiter: Delimiter::default(), window: 1 << 20, visible: false }
    }
}

/// Writes the names in best order; returns how many could not be looked at, of which `complain`
/// has been told.
///
/// # Errors
/// As [`OrderError`] says.
pub fn list(
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    options: &ListOptions,
    complain: &mut dyn FnMut(&Path, &InputError),
) -> Result<usize, OrderError> {
    let mut names = Names::default();
    let mut failed = 0;
    loop {
        names.clear();
        let more = names.fill(input, options.delimiter, options.window.max(1));
        let more = more.map_err(OrderError::Input)?;
        failed += list_names(&names, out, options, complain).map_err(OrderError::Output)?;
        if !more {
            return Ok(failed);
        }
    }
}

/// Writes these names in best order; otherwise as [`list`].
///
/// # Errors
/// Of the output.
pub fn list_names(
    names: &Names,
    out: &mut dyn Write,
    options: &ListOptions,
    complain: &mut dyn FnMut(&Path, &InputError),
) -> io::Result<usize> {
    let ranking = rank(names, options.by, complain);
    for index in ranking.order.iter().map(|index| *index as usize) {
        if options.visible {
            write!(out, "{}", Foreign::path(names.get(index)))?;
            out.write_all(&[options.delimiter.byte()])?;
        } else {
            names.write(index, out, options.delimiter)?;
        }
    }
    out.flush()?;
    Ok(ranking.failed)
}
