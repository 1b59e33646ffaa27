//! Files that use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// For each file, the files that it uses, and the names that it uses of each.
#[derive(Debug, Default)]
pub(super) struct Graph(pub BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Graph {
    /// Takes out the use of one file by another; false if there is none.
    pub(super) fn take_out(&mut self, from: &str, to: &str) -> bool {
        self.0.get_mut(from).and_then(|used| used.remove(to)).is_some()
    }

    /// Returns true if one file uses the other, perhaps through further ones.
    pub(super) fn reaches(&self, from: &str, to: &str) -> bool {
        self.reached(from).contains(to)
    }

    /// Returns a description of each group of files that use each other in a circle.
    pub(super) fn circles(&self) -> Vec<String> {
        let reached: BTreeMap<&str, _> =
            self.0.keys().map(|file| (&**file, self.reached(file))).collect();
        let mut groups = BTreeSet::new();
        for (file, others) in reached.iter().filter(|(file, others)| others.contains(**file)) {
            let back = |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(file));
            groups.insert(others.iter().filter(back).copied().collect::<BTreeSet<_>>());
        }
        groups.iter().map(|group| self.describe(group)).collect()
    }

    /// Files that one uses, and that these use; itself only if it is in a circle.
    fn reached<'a>(&'a self, file: &str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut left: Vec<&str> = self.used(file).collect();
        while let Some(next) = left.pop() {
            if found.insert(next) {
                left.extend(self.used(next));
            }
        }
        found
    }

    fn used(&self, file: &str) -> impl Iterator<Item = &str> {
        self.0.get(file).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// Says what ties a group: a line for each use.
    fn describe(&self, group: &BTreeSet<&str>) -> String {
        let mut text = format!("{} files use each other in a circle:", group.len());
        for file in group {
            for (other, names) in self.0.get(*file).into_iter().flatten() {
                if group.contains(&**other) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    let _ = write!(text, "\n    {file} -> {other}: {}", names.join(", "));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(uses: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (from, to) in uses {
            let used = graph.0.entry((*from).to_owned()).or_default();
            used.insert((*to).to_owned(), BTreeSet::from(["it".to_owned()]));
        }
        graph
    }

    #[test]
    fn circles_are_told_from_what_hangs_on_them() {
        let mut all = graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "e")]);
        let told = "2 files use each other in a circle:\n    b -> c: it\n    c -> b: it";
        assert_eq!(all.circles(), [told]);
        assert!(all.take_out("c", "b") && !all.take_out("c", "b"));
        assert_eq!(all.circles(), [""; 0]);
        assert!(all.reaches("a", "e") && !all.reaches("e", "a") && !all.reaches("a", "a"));
    }
}
