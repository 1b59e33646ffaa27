//! Host profile: what this machine's parts cost, measured once and kept in one versioned file that
//! every part reads (gray-box paper, section 5).
//!
//! - [`Profile`]: the file, `$XDG_CACHE_HOME/discnice/profile.toml`;
//! - [`calibrate`]: the microbenchmarks, at most a minute of them;
//! - [`busy`]: whether the machine is quiet enough to believe them.

mod bench;
mod quiet;
mod store;

pub use bench::{Calibration, Mount, calibrate, file_system, mounts};
pub use quiet::busy;
pub use store::{
    Draft, Figure, FigureName, FigureUnit, LoadError, Profile, Trust, VERSION, access_unit,
};
