//! What the pages of a report have in common.

use crate::frame::facts::Facts;

/// What stands above all pages.
pub struct Head<'a> {
    pub(super) facts: &'a Facts,
    pub(super) disk: &'a str,
    pub(super) quick: bool,
}

impl Head<'_> {
    /// Sentences of what was measured where.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.facts.lines();
        lines.push(format!("Disk: {}.", self.disk));
        if self.quick {
            lines.push("Quick run: few repetitions, so the spread says little.".into());
        }
        lines
    }
}

/// Name of the file of a plot of a page.
pub(super) fn plot_name(page: &str, index: usize) -> String {
    format!("{page}-{}.svg", index + 1)
}
