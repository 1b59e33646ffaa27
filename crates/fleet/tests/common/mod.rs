//! A real server of this test's own, and machines that exist only here.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod model;
pub mod server;
