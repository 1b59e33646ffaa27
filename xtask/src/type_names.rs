//! Types of one name in crates that meet, which a reader could tell apart only by where each was imported.
//!
//! Two crates meet in a crate that uses a type of both, or that uses one of the other and has a public one of its own.
//! A type is used where a path begins with its crate, or with what a file imports from there; in tests and examples,
//! too. What only tests define counts for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::code::{bare, without_tests};
use crate::files::walk;
use crate::names::{self, Names};

/// Folders of a package with its code. Other packages may lie beside them.
const FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// Types of all crates, by the names of their packages.
#[derive(Default)]
pub(crate) struct TypeNames(BTreeMap<String, Types>);

/// Types of a crate.
#[derive(Default)]
struct Types {
    /// Names of the public types that it defines.
    defined: BTreeSet<String>,
    /// Types of others that it uses, each by the name of its package and its own.
    used: BTreeSet<(String, String)>,
}

impl TypeNames {
    /// Adds a crate, by its name and the folder of its manifest.
    pub(crate) fn read(&mut self, name: &str, package: &Path) -> anyhow::Result<()> {
        let types = self.0.entry(name.to_owned()).or_default();
        for folder in FOLDERS {
            let place = package.join(folder);
            if !place.is_dir() {
                continue;
            }
            walk(&place, &["rs"], &mut |file| {
                let text = bare(&fs::read_to_string(file)?);
                types.use_all(&text);
                if folder == "src" && !is_of_tests(file.strip_prefix(&place)?) {
                    types.define_all(&text);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Describes what crates that meet call by one name: a line for each crate in which they do, and each name.
    pub(crate) fn offences(&self) -> Vec<String> {
        let lines = self.0.iter().flat_map(|(user, types)| {
            let known = self.known(user, types).into_iter().filter(|(_, crates)| crates.len() > 1);
            known.map(move |(name, crates)| {
                let crates = crates.into_iter().collect::<Vec<_>>().join(" and of ");
                format!("{user} uses types called {name} of {crates}: rename one, so that its name says what it is")
            })
        });
        lines.collect()
    }

    /// Names of the types that a crate uses, each with the crates that define one so called, itself included.
    fn known<'a>(
        &'a self,
        user: &'a str,
        types: &'a Types,
    ) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut known = BTreeMap::<_, BTreeSet<_>>::new();
        for (definer, name) in &types.used {
            if self.0.get(definer).is_some_and(|types| types.defined.contains(name)) {
                let crates = known.entry(&**name).or_default();
                crates.insert(&**definer);
                crates.extend(types.defined.contains(name).then_some(user));
            }
        }
        known
    }
}

impl Types {
    fn define_all(&mut self, bare: &str) {
        self.defined.extend(names::read(&without_tests(bare)).types);
    }

    fn use_all(&mut self, bare: &str) {
        let names = names::read(bare);
        let imported = names.imports.iter().map(|import| &import.named.path);
        let paths = imported.chain(names.named.iter().map(|named| &named.path));
        self.used.extend(paths.filter_map(|path| foreign(&names, path)));
    }
}

/// The package and the type of another crate that a path of a file names.
fn foreign(names: &Names, path: &[String]) -> Option<(String, String)> {
    let (first, rest) = path.split_first()?;
    let import = names.imports.iter().find(|import| import.name == *first && !rest.is_empty());
    let before = import.map_or(std::slice::from_ref(first), |import| &import.named.path);
    let mut segments = before.iter().chain(rest);
    let package = segments.next()?.replace('_', "-");
    let name = segments.find(|segment| is_type(segment))?;
    Some((package, name.clone()))
}

/// Tells the name of a type from those of modules, functions and constants.
fn is_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns true if only tests compile the file.
pub(crate) fn is_of_tests(file: &Path) -> bool {
    file.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the crates in which others meet, with the name of the types; crates are given with their code.
    fn clashes(crates: &[(&str, &str)]) -> Vec<String> {
        let mut all = TypeNames::default();
        for (name, text) in crates {
            let types = all.0.entry((*name).to_owned()).or_default();
            let text = bare(text);
            types.define_all(&text);
            types.use_all(&text);
        }
        let told = all.offences();
        told.iter().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    }

    const A: (&str, &str) = ("a-a", "pub struct Row; pub unsafe trait Entry {}");
    const B: (&str, &str) = ("b", "pub enum Row {} pub(crate) struct Entry;");

    #[test]
    fn a_crate_that_uses_two_types_of_one_name_is_found() {
        let both = ["c uses types called Row of a-a and of b"];
        let used = "use a_a::Row; fn f(row: b::table::Row) {}";
        assert_eq!(clashes(&[A, B, ("c", used)]), both);
        assert_eq!(
            clashes(&[A, B, ("c", "use a_a::{self, Row::X}; use b::m; m::Row::new();")]),
            both
        );
        let in_tests = "use a_a::Row as Other; #[cfg(test)] mod tests { use b::Row; }";
        assert_eq!(clashes(&[A, B, ("c", in_tests)]), both);
    }

    #[test]
    fn a_crate_that_uses_a_type_and_defines_one_so_called_is_found() {
        let own = ["c uses types called Entry of a-a and of c"];
        assert_eq!(clashes(&[A, ("c", "pub type Entry = u8; impl a_a::Entry for X {}")]), own);
        for private in ["struct", "pub(crate) struct", "#[cfg(test)] pub struct"] {
            let code = format!("{private} Entry; use a_a::Entry as _;");
            assert_eq!(clashes(&[A, ("c", &code)]), [""; 0], "{private}");
        }
    }

    #[test]
    fn crates_that_do_not_meet_may_use_one_name() {
        assert_eq!(clashes(&[A, B, ("c", "use a_a::Row;"), ("d", "use b::Row;")]), [""; 0]);
        assert_eq!(
            clashes(&[A, B, ("c", "pub use a_a::Row;"), ("d", "use {a_a::Row, c::Row};")]),
            [""; 0]
        );
        assert_eq!(clashes(&[A, ("b", "pub const ROW: u8 = 0; use b::Row;")]), [""; 0]);
        assert_eq!(clashes(&[A, B, ("c", "// b::Row\nuse a_a::Row; f(\"b::Row\");")]), [""; 0]);
    }
}
