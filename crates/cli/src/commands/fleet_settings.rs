//! The settings of a fleet's budget, as commands are given them and show them.

use std::time::Duration;

use clap::Args as ClapArgs;
use discnice_fleet::Settings;
use discnice_fleet::settings::Contradiction;
use discnice_units::Rate;

use crate::values;

/// What is set; the rest stays as it is.
#[derive(Debug, ClapArgs)]
pub(super) struct SettingsArgs {
    /// Most that all machines together may move, for example 600M (MiB/s)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(super) cap: Option<Rate>,
    /// What each machine may move without a lease [default: a tenth of the cap, divided by --nodes]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(super) floor: Option<Rate>,
    /// Most machines that are admitted; their floors together must be below the cap [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) nodes: Option<u64>,
    /// How long a lease lasts [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = values::duration)]
    pub(super) lease: Option<Duration>,
}

impl SettingsArgs {
    /// These settings on top of what was set before.
    pub(super) fn over(&self, before: Option<Settings>) -> Result<Settings, SetError> {
        let cap = self.cap.or(before.map(|before| before.cap)).ok_or(SetError::NoCap)?;
        // A floor that was found by default follows the cap and the number of machines.
        let kept = before.filter(|before| {
            Settings::new(before.cap, None, Some(before.nodes), None)
                .is_ok_and(|usual| usual.floor != before.floor)
        });
        let floor = self.floor.or(kept.map(|before| before.floor));
        let nodes = self.nodes.or(before.map(|before| before.nodes));
        let lease = self.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        let lease = lease.or(before.map(|before| before.lease));
        Settings::new(cap, floor, nodes, lease).map_err(SetError::Contradiction)
    }
}

/// Why nothing is set.
#[derive(Debug)]
pub(super) enum SetError {
    NoCap,
    Contradiction(Contradiction),
}

impl std::fmt::Display for SetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCap => f.write_str("a new budget needs a cap, for example --cap 600M"),
            Self::Contradiction(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for SetError {}

/// The settings in words.
pub(super) fn described(settings: &Settings) -> String {
    format!(
        "{} for at most {} machines, at least {} each, by leases of {}",
        settings.cap,
        settings.nodes,
        settings.floor,
        humantime::format_duration(Duration::from_millis(settings.lease))
    )
}
