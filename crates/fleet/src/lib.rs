//! One budget for many machines.
//!
//! A class may share its budget with classes of other machines, through a Redis or Valkey server. Each *node*, a class
//! on a machine, has a *lease*: so many bytes a second until a moment. A script on the server ([`script::LEASE`])
//! grants leases, and never more than the class's *cap*; past the end of its lease a node has its *floor*, for which
//! the server keeps room. So nothing has to be heard in time by any machine for the cap to hold.
//!
//! - [`address`]: where a class's budget is;
//! - [`settings`]: cap, floor, number of nodes, length of a lease;
//! - [`script`]: one call of the script, and its reply;
//! - [`node`]: when a node calls, and what it has;
//! - [`demand`]: what a node wants;
//! - [`link`]: a connection;
//! - [`table`]: all nodes, to be shown;
//! - [`fault`]: why a node has no lease.
//!
//! What the server answers is input: each number is checked where it comes in ([`script::parse`]).
#![deny(unsafe_code)]

pub mod address;
pub mod demand;
pub mod fault;
pub mod link;
pub mod node;
pub mod script;
pub mod settings;
pub mod table;
mod transport;

pub use address::Address;
pub use fault::Fault;
pub use link::Link;
pub use node::Node;
pub use settings::Settings;
