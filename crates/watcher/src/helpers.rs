//! The helpers of a process that holds others. All watched classes share them.

use discnice_ledger::Board;
use discnice_sys::block::BlockId;

use crate::discovery::lineage::Lineage;
use crate::discovery::newcomer::Newcomer;
use crate::holding::Guards;
use crate::writeback::WriteBack;

/// The helpers; processes among them are started when they are first needed, and end with us.
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    /// Where it is seen whether others are busy.
    pub(crate) board: Option<&'static Board>,
    /// Release what we hold if we are killed.
    pub guards: Guards,
    /// Writes back what the held dirtied.
    pub(crate) write_back: WriteBack,
    /// Members that newcomers may descend from.
    pub(crate) lineage: Lineage,
}

impl Helpers {
    /// Creates helpers for classes of the user of this board.
    #[must_use]
    pub fn on(board: Option<&'static Board>) -> Self {
        Self { board, ..Self::default() }
    }

    /// Starts those that are processes now: once this process has threads it is not copied any more.
    pub fn prepare(&self) {
        self.guards.guardian.prepare();
        self.guards.thawer.prepare();
        self.write_back.prepare();
    }

    /// Returns the blocks of the watched classes that a newcomer may be of, by its ancestry and by
    /// what its environment names. A process that its class lists is announced by the class, too.
    #[must_use]
    pub fn classes_of(&self, newcomer: &Newcomer) -> Vec<BlockId> {
        let mut classes = self.lineage.classes(newcomer);
        for named in newcomer.blocks() {
            if !classes.contains(&named) {
                classes.push(named);
            }
        }
        classes
    }
}
