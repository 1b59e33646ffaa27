//! The estimator as a whole: bounds, a model of the page cache, recorded traces.

mod bounds;
mod model;
mod traces;
