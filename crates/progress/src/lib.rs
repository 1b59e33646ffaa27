//! Regulation of a job by its own progress (MS Manners).
//!
//! - [`model`]: the mathematics: from progress and durations to verdicts and pauses; pure;
//! - [`testpoint`]: the library that a job calls to tell its progress;
//! - [`control`]: regulation of programs that tell nothing, from outside (BeNice).

pub mod control;
pub mod model;
pub mod testpoint;
