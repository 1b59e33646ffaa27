//! Classes as metrics in the OpenMetrics text format 1.0, and a listener that serves them.
//!
//! - [`mod@text`]: all metrics of some classes;
//! - [`Endpoint`], [`Listener`]: where scrapers find them;
//! - [`Audience`]: the clients that are answered.
//!
//! A listener only answers; it keeps nothing between two scrapes and never changes a class.

#![forbid(unsafe_code)]

mod endpoint;
mod http;
mod peer;
mod text;

pub use endpoint::{Endpoint, Listener, Unusable};
pub use http::serve;
pub use peer::Audience;
pub use text::{ClassMetrics, ProcessCounts, text};
