//! Why writing in best order stops.

use std::io;

/// Why [`list`](super::list()) or [`cat`](super::cat()) stopped.
#[derive(Debug)]
pub enum OrderError {
    /// The names, or the file, could not be read.
    Input(io::Error),
    /// The output could not be written.
    Output(io::Error),
}
