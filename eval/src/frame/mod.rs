//! The frame that all experiments share: what a paper says, what is measured and stored, and how
//! it is run.

pub mod course;
pub mod experiment;
pub mod facts;
pub mod paper;
pub mod record;
pub mod requirement;
pub mod runner;
pub mod study;
