//! The paths in the code of a file: what it imports, what it names, and which modules and public types it declares.

/// A path and where it stands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Segments as they are written.
    pub path: Vec<String>,
    /// Modules within the file around it.
    pub inside: Vec<String>,
}

/// A name that the file brings in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Path that it stands for.
    pub named: Named,
    /// The name by which the file calls it.
    pub name: String,
    /// Whether others may import it from here.
    pub public: bool,
}

/// All of a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// What `use` brings in.
    pub imports: Vec<Import>,
    /// Paths of two segments or more.
    pub named: Vec<Named>,
    /// Modules with a file of their own.
    pub modules: Vec<String>,
    /// Types that are `pub` without bounds.
    pub types: Vec<String>,
}

/// Reads the names in code.
pub(crate) fn read(code: &str) -> Names {
    let mut reader =
        Reader { tokens: tokens(code), at: 0, names: Names::default(), blocks: Vec::new() };
    while reader.at < reader.tokens.len() {
        reader.step();
    }
    reader.names
}

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    names: Names,
    /// Blocks that are open here: the name of each that is a module.
    blocks: Vec<Option<&'a str>>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            ("mod", name, ";") => self.names.modules.push(name.to_owned()),
            ("struct" | "enum" | "union" | "trait" | "type", name, _)
                if is_name(name) && self.is_for_all() =>
            {
                self.names.types.push(name.to_owned());
            }
            ("mod", name, "{") => {
                self.blocks.push(Some(name));
                self.at += 2;
            }
            ("{", ..) => self.blocks.push(None),
            ("}", ..) => drop(self.blocks.pop()),
            ("use", next, _) if next != "<" => {
                let public = self.is_public();
                self.at += 1;
                self.tree(&mut Vec::new(), public);
            }
            (name, "::", _) if is_name(name) => {
                let path = self.path();
                let named = self.placed(path);
                self.names.named.push(named);
                return;
            }
            _ => {}
        }
        self.at += 1;
    }

    /// True if `pub` alone stands before this token.
    fn is_for_all(&self) -> bool {
        let before = &self.tokens[..self.at];
        before.strip_suffix(&["unsafe"]).unwrap_or(before).ends_with(&["pub"])
    }

    /// True if `pub` or `pub(…)` stands before this token.
    fn is_public(&self) -> bool {
        let before = &self.tokens[..self.at];
        let opened = before.iter().rposition(|token| *token == "(");
        before.ends_with(&["pub"])
            || before.ends_with(&[")"]) && opened.is_some_and(|at| before[..at].ends_with(&["pub"]))
    }

    /// Reads one branch of what is imported, and stops at the token after it.
    fn tree(&mut self, prefix: &mut Vec<String>, public: bool) {
        let length = prefix.len();
        loop {
            let token = self.peek(0);
            self.at += 1;
            if token == "{" {
                while !["}", ""].contains(&self.peek(0)) {
                    self.tree(prefix, public);
                    self.at += usize::from(self.peek(0) == ",");
                }
                self.at += 1;
                break;
            }
            prefix.push(token.to_owned());
            if self.peek(0) != "::" {
                self.import(prefix.clone(), public);
                break;
            }
            self.at += 1;
        }
        prefix.truncate(length);
    }

    /// Enters an import of which only the other name is still to be read.
    fn import(&mut self, mut path: Vec<String>, public: bool) {
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.peek(0) == "as" {
            self.peek(1).clone_into(&mut name);
            self.at += 2;
        }
        let named = self.placed(path);
        self.names.imports.push(Import { named, name, public });
    }

    /// Reads a path, and stops at the token after it.
    fn path(&mut self) -> Vec<String> {
        let mut path = vec![self.peek(0).to_owned()];
        self.at += 1;
        while self.peek(0) == "::" && is_name(self.peek(1)) {
            path.push(self.peek(1).to_owned());
            self.at += 2;
        }
        // `a::<b::c>()`: what stands in the brackets is a path of its own.
        self.at += usize::from(self.peek(0) == "::");
        path
    }

    fn placed(&self, path: Vec<String>) -> Named {
        let inside = self.blocks.iter().flatten().map(|name| (*name).to_owned()).collect();
        Named { path, inside }
    }
}

/// Splits code into names, `::` and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c: char| !is_of_a_name(c)).unwrap_or(rest.len());
        let length = match name {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            _ => name,
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| is_of_a_name(c) && !c.is_ascii_digit())
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(code: &str) -> Vec<String> {
        let shown = |import: Import| {
            let public = if import.public { "pub " } else { "" };
            format!("{public}{} = {}", import.name, import.named.path.join("::"))
        };
        read(code).imports.into_iter().map(shown).collect()
    }

    #[test]
    fn each_branch_of_an_import_is_found() {
        assert_eq!(imports("use a::b;"), ["b = a::b"]);
        let found = imports("use crate::{a::{self, b as c}, d::*,};\npub(crate) use e;");
        assert_eq!(found, ["a = crate::a", "c = crate::a::b", "* = crate::d::*", "pub e = e"]);
        assert_eq!(imports("pub use a::b; fn f(c: u8) -> impl D + use<> {}"), ["pub b = a::b"]);
        assert_eq!(imports("f(pub_crate); use a; g(); use b;"), ["a = a", "b = b"]);
    }

    #[test]
    fn types_are_found_that_others_may_use() {
        let found = read("pub struct A { pub union: u8 } enum B {} pub unsafe trait C { type D; }");
        assert_eq!(found.types, ["A", "C"]);
        assert_eq!(read("pub(crate) type E = u8; pub type F<T> = T; pub fn g() {}").types, ["F"]);
    }

    #[test]
    fn paths_are_found_with_the_modules_around_them() {
        let found = read("mod a; mod b { mod c { d::e::<f::g>(); } h::i } super::j");
        assert_eq!(found.modules, ["a"]);
        let shown: Vec<_> = found
            .named
            .iter()
            .map(|named| (named.path.join("::"), named.inside.join("::")))
            .collect();
        let expected = [("d::e", "b::c"), ("f::g", "b::c"), ("h::i", "b"), ("super::j", "")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(shown, expected);
    }
}
