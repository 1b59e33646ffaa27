//! policyd: what needs a second process, one for each user.
//!
//! It watches classes from outside ([`crate`]): members that our library cannot enter or
//! see, attached processes, and their descendants. It is started when a command needs it, ends itself
//! when it has had nothing to do for a minute and there are no rules, and is never on the way of a call.
//!
//! All that it knows lies in the classes' shared memory; a daemon that is killed loses nothing, and
//! the next one finds every member again. That is why its protocol is one line: `watch BLOCK`.
//!
//! - [`singleton`]: the runtime directory, the lock that makes it the only one, the socket;
//! - [`client`]: asking it, and starting it;
//! - [`socket_activation`]: a socket that systemd has opened for it;
//! - [`server`]: its loop; `connections`: its clients;
//! - [`watched_classes`]: the classes that it watches; `watched_class`: one of them;
//! - `child_classes`: classes of their own for children;
//! - [`rules`]: which processes that no command of ours started enter a class;
//! - `memory_pressure`: which classes are paused so that their pages are reclaimed;
//! - `policy_program`: programs that are policies of classes;
//! - `fleet_lease`: leases of budgets that many machines share;
//! - [`tuning`]: every amount and time that tunes this.
#![deny(unsafe_code)]

mod child_classes;
pub mod client;
mod connections;
mod fleet_lease;
mod memory_pressure;
mod policy_program;
pub mod rules;
pub mod server;
mod settings;
pub mod singleton;
pub mod socket_activation;
pub mod tuning;
mod watched_class;
pub mod watched_classes;

pub use fleet_lease::Addresses;
pub use policy_program::Programs;
pub use server::serve;
pub use settings::DaemonSettings;
