//! The files of a crate, and which of them use which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::slice;

use anyhow::{Context, bail};

use super::graph::Graph;
use crate::code::code;
use crate::names::{self, Named, Names};

/// How many imports are followed from one name: Rust has no endless ones.
const IMPORTS: u32 = 16;

/// Files of a crate, by the path of their module.
#[derive(Default)]
pub(super) struct CrateFiles(BTreeMap<Vec<String>, File>);

struct File {
    /// Path from the workspace.
    name: String,
    names: Names,
}

impl CrateFiles {
    /// Reads the file of a crate's root, and those of the modules below it.
    pub(super) fn read(workspace: &Path, root: &Path) -> anyhow::Result<Self> {
        let mut files = Self::default();
        let folder = root.parent().context("no folder")?;
        files.add(workspace, root, folder, Vec::new())?;
        Ok(files)
    }

    /// Adds the file of a module, and those of its children, which lie in `folder`.
    fn add(
        &mut self,
        workspace: &Path,
        file: &Path,
        folder: &Path,
        module: Vec<String>,
    ) -> anyhow::Result<()> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let names = names::read(&code(&text));
        for child in &names.modules {
            let below = folder.join(child);
            let places = [below.with_extension("rs"), below.join("mod.rs")];
            let Some(place) = places.iter().find(|place| place.exists()) else {
                bail!("{}: no file of its module {child}", file.display());
            };
            self.add(workspace, place, &below, [&module[..], slice::from_ref(child)].concat())?;
        }
        let name = file.strip_prefix(workspace)?.display().to_string();
        self.0.insert(module, File { name, names });
        Ok(())
    }

    /// Tells which file uses which, and the names that it uses.
    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (module, file) in &self.0 {
            let imported = file.names.imports.iter().filter(|import| {
                let path = self.absolute(module, &import.named);
                // To hand on what a child defines is no use of it.
                !(import.public && path.is_some_and(|path| path.starts_with(module)))
            });
            let named = imported.map(|import| &import.named).chain(&file.names.named);
            for (definer, name) in named.filter_map(|named| self.definition(module, named)) {
                if definer.name != file.name {
                    let known = graph.0.entry(file.name.clone()).or_default();
                    known.entry(definer.name.clone()).or_insert_with(BTreeSet::new).insert(name);
                }
            }
        }
        graph
    }

    /// The file that defines what a module names, and the name there; none for a module itself.
    fn definition(&self, module: &[String], named: &Named) -> Option<(&File, String)> {
        self.follow(&self.absolute(module, named)?, IMPORTS)
    }

    /// Resolves a path from the root of the crate: the deepest module in it, unless that imports the next segment.
    fn follow(&self, path: &[String], imports: u32) -> Option<(&File, String)> {
        let depth = (0..=path.len()).rev().find(|depth| self.0.contains_key(&path[..*depth]))?;
        let (module, rest) = path.split_at(depth);
        let (file, name) = (&self.0[module], rest.first()?);
        match file.import(name).filter(|named| named.path.len() > 1) {
            Some(named) => {
                let target = self.absolute(module, named)?;
                self.follow(&[&target, &rest[1..]].concat(), imports.checked_sub(1)?)
            }
            None => Some((file, name.clone())),
        }
    }

    /// Makes a path begin at the root of the crate; none of what is in other crates.
    fn absolute(&self, module: &[String], named: &Named) -> Option<Vec<String>> {
        let (first, rest) = named.path.split_first()?;
        if first == "crate" {
            return Some(rest.to_vec());
        }
        let up = |step: &&String| matches!(step.as_str(), "self" | "super");
        let steps = named.path.iter().take_while(up).count();
        if steps > 0 {
            let (steps, rest) = named.path.split_at(steps);
            let mut here = [module, &named.inside].concat();
            let above = steps.iter().filter(|step| *step == "super").count();
            here.truncate(here.len().saturating_sub(above));
            return Some([&here, rest].concat());
        }
        let child = [module, slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return Some([&child, rest].concat());
        }
        let import = self.0[module].import(first).filter(|import| import.path[0] != *first)?;
        Some([&self.absolute(module, import)?, rest].concat())
    }
}

impl File {
    /// What the file calls by this name.
    fn import(&self, name: &str) -> Option<&Named> {
        let mut imports = self.names.imports.iter();
        imports.find(|import| import.name == name && name != "*").map(|import| &import.named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says which file uses what of which; files are given by the paths of their modules.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(module, text)| {
            let path = module.split("::").skip(1).map(str::to_owned).collect();
            (path, File { name: (*module).to_owned(), names: names::read(text) })
        });
        let graph = CrateFiles(files.collect()).graph();
        let uses = graph.0.iter().flat_map(|(from, used)| used.iter().map(move |to| (from, to)));
        uses.map(|(from, (to, names))| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("{from} {to} {}", names.join(" "))
        })
        .collect()
    }

    #[test]
    fn a_name_belongs_to_the_file_that_defines_it() {
        let root = ("c", "mod a; mod b; pub use a::One;");
        let handed_on = [root, ("c::a", "struct One;"), ("c::b", "use crate::One; One::f();")];
        assert_eq!(uses(&handed_on), ["c::b c::a One"]);
        let defined = [root, ("c::a", "use super::Two;"), ("c::b", "use std::fs::File as One;")];
        assert_eq!(uses(&defined), ["c::a c Two"]);
        let foreign = [("c", "mod a; use std::fs;"), ("c::a", "super::fs::read();")];
        assert_eq!(uses(&foreign), [""; 0]);
    }

    #[test]
    fn a_module_is_used_when_something_in_it_is_named() {
        let files = |text| [("c", "mod a; mod b;"), ("c::a", ""), ("c::b", text)];
        assert_eq!(uses(&files("use crate::a;")), [""; 0]);
        assert_eq!(uses(&files("use crate::a as d; fn f() { d::e() }")), ["c::b c::a e"]);
        assert_eq!(uses(&files("mod m { fn f() { super::super::a::g() } }")), ["c::b c::a g"]);
        assert_eq!(uses(&files("mod m { fn f() { super::g() } } a::h();")), [""; 0]);
    }

    #[test]
    fn a_parent_uses_what_it_names_and_does_not_only_hand_on() {
        let files = |text| [("c", text), ("c::a", "")];
        assert_eq!(uses(&files("mod a; pub use a::B; pub(crate) use self::a::D;")), [""; 0]);
        assert_eq!(uses(&files("mod a; use a::B; fn f() { a::g() }")), ["c c::a B g"]);
    }
}
