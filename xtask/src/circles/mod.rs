//! Which source files of a crate use each other in a circle.
//!
//! A file uses another if its code names something that the other defines: by an import (`use crate::a::B`), or by a
//! path (`super::a::b()`). Imports are followed to the file that defines the name: what a parent only hands on from a
//! child belongs to the child, and whether a parent is called `a.rs` or `a/mod.rs` makes no difference. So a module and
//! its child are a circle only if the parent defines something that the child names, and itself names something that
//! the child defines. No use are:
//! - the declaration of a module, and `pub use` of what a child defines;
//! - the import of a module, as long as nothing in it is named;
//! - code that only tests compile;
//! - methods, fields and what macros of other files name: nothing but the code's own paths is read.

mod crate_files;
mod graph;
mod known;

use std::path::Path;

use crate_files::CrateFiles;
use graph::Graph;
use known::{KNOWN, Known};

/// The check of all crates.
#[derive(Default)]
pub(crate) struct Circles {
    crates: Vec<Graph>,
}

impl Circles {
    /// Adds a crate, by the folder of its manifest.
    pub(crate) fn read(&mut self, workspace: &Path, package: &Path) -> anyhow::Result<()> {
        for root in ["src/lib.rs", "src/main.rs"].map(|root| package.join(root)) {
            if root.exists() {
                self.crates.push(CrateFiles::read(workspace, &root)?.graph());
            }
        }
        Ok(())
    }

    /// Describes circles that are not known, and what is known but no circle.
    pub(crate) fn offences(self) -> Vec<String> {
        offences(self.crates, KNOWN)
    }
}

fn offences(mut crates: Vec<Graph>, known: &'static [Known]) -> Vec<String> {
    let listed =
        |known: &'static Known| known.uses.iter().map(|(from, to)| (*from, *to, known.why));
    let uses: Vec<_> = known.iter().flat_map(listed).collect();
    let mut wrong = Vec::new();
    for (from, to, why) in &uses {
        let mut found = crates.iter_mut().map(|graph| graph.take_out(from, to));
        if !found.any(|found| found) {
            wrong.push(format!("{from} does not use {to}, but is listed: {why}"));
        }
    }
    wrong.extend(crates.iter().flat_map(Graph::circles));
    for (from, to, why) in uses {
        if !crates.iter().any(|graph| graph.reaches(to, from)) {
            wrong.push(format!("{from} uses {to} in no circle, but is listed: {why}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &[Known] = &[Known { why: "a test", uses: &[("a", "b")] }];

    fn graph(uses: &[(&str, &str)]) -> Vec<Graph> {
        let mut graph = Graph::default();
        for (from, to) in uses {
            let used = graph.0.entry((*from).to_owned()).or_default();
            used.entry((*to).to_owned()).or_default().insert("it".to_owned());
        }
        vec![graph]
    }

    #[test]
    fn just_the_circles_that_are_known_remain() {
        assert_eq!(offences(graph(&[("a", "b"), ("b", "a")]), LISTED), [""; 0]);
        assert_eq!(offences(graph(&[("a", "b"), ("b", "a")]), &[]).len(), 1);
        let gone = offences(graph(&[("b", "a")]), LISTED);
        assert!(gone.contains(&"a does not use b, but is listed: a test".to_owned()));
        let straight = offences(graph(&[("a", "b")]), LISTED);
        assert_eq!(straight, ["a uses b in no circle, but is listed: a test"]);
        assert_eq!(offences(graph(&[("a", "b"), ("b", "a"), ("c", "c")]), LISTED).len(), 1);
    }
}
