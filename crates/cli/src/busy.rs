//! From when on others count as busy, for classes that give way to them.

use discnice_ledger::policy::throttle::Thresholds;
use discnice_ledger::policy::{Limits, Resource, When};
use discnice_registry::MappedBoard;

use crate::bandwidth::bandwidth;
use crate::config::ConfigFiles;

/// Prepares the board for a class that gives way: from when on others count as busy.
///
/// # Errors
/// There is no board; such a class is then always held.
pub fn prepare(limits: &Limits) -> anyhow::Result<()> {
    if limits.when() != When::Busy {
        return Ok(());
    }
    let found = MappedBoard::find_or_create()?;
    // A file that cannot be read is told of where its limits are needed.
    let busy = ConfigFiles::load().map(|config| config.busy()).unwrap_or_default();
    found.board.set_thresholds(&busy.applied(&Thresholds::of(bandwidth())));
    let network = [Resource::Net, Resource::NetUp, Resource::NetDown];
    if network.into_iter().any(|one| !limits.rate(one).is_unlimited()) {
        found.board.want_network();
    }
    Ok(())
}
