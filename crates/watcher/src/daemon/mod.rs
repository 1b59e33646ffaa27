//! policyd: what needs a second process, one for each user.
//!
//! It watches classes from outside ([`crate`]): members that our library cannot enter or
//! see, attached processes, and their descendants. It is started when a command needs it, ends itself
//! when it has had nothing to do for a minute and there are no rules, and is never on the way of a call.
//!
//! All that it knows lies in the classes' shared memory; a daemon that is killed loses nothing, and
//! the next one finds every member again. That is why its protocol is one line: `watch BLOCK`.
//!
//! - [`place`]: the runtime directory, the lock that makes it the only one, the socket;
//! - [`client`]: asking it, and starting it;
//! - [`activation`]: a socket that systemd has opened for it;
//! - [`server`]: its loop; `connections`: its clients; [`kept`]: the classes that it watches;
//! - [`rules`]: which processes that no command of ours started enter a class;
//! - `memory`: which of them are paused so that their pages are reclaimed;
//! - `adviser`: programs that are policies of classes;
//! - `tenant`: leases of budgets that many machines share.
#![deny(unsafe_code)]

pub mod activation;
mod adviser;
mod apart;
pub mod client;
mod connections;
pub mod keeper;
mod kept;
mod memory;
pub mod place;
pub mod rules;
pub mod server;
mod tenant;

pub use adviser::Programs;
pub use server::{Settings, serve};
pub use tenant::Addresses;
