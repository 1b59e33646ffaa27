//! Patterns of conditions, as of a shell: `*` for any characters, `?` for one, `[a-z]` for one of these.
//!
//! In paths `*` stops at `/`, `**` does not, and a pattern that does not begin with `/` is compared with the end of the
//! path: `baloo_file`, `kf6/baloo_*`. One with `**` begins with `/` or `**/`.

use std::fmt;

use glob::{MatchOptions, Pattern};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::subject::{Key, Subject};

/// What the kernel keeps of a process's name, in bytes (`TASK_COMM_LEN` without the zero, proc_pid_comm(5)).
const NAME: usize = 15;

/// The patterns of one condition, of which one must match.
#[derive(Debug, Clone)]
pub struct Patterns(Vec<One>);

/// A pattern.
#[derive(Debug, Clone)]
struct One {
    text: String,
    pattern: Pattern,
    /// How many names at the end of a path it is compared with, if not with all.
    names: Option<usize>,
}

/// What means more than itself.
const SPECIAL: [char; 3] = ['*', '?', '['];

impl One {
    fn compile(kind: Kind, text: &str) -> Result<Self, String> {
        kind.check(text)?;
        let pattern =
            Pattern::new(text).map_err(|error| format!("{text:?} is no pattern: {}", error.msg))?;
        let is_end = kind == Kind::Path && !text.starts_with('/') && !text.contains("**");
        let names = is_end.then(|| text.split('/').count());
        let text = text.to_owned();
        Ok(Self { text, pattern, names })
    }

    /// Returns true if it matches. What differs in what stands before and behind all that is special is told at once:
    /// most rules match no process.
    fn matches(&self, value: &str, options: MatchOptions) -> bool {
        let Some(value) = self.names.map_or(Some(value), |names| last(value, names)) else {
            return false;
        };
        let text = self.text.as_str();
        let head = text.find(SPECIAL).unwrap_or(text.len());
        if head == text.len() {
            return value == text;
        }
        value.starts_with(&text[..head]) && self.pattern.matches_with(value, options)
    }
}

/// The last so many names of a path; `None` if it has fewer.
fn last(path: &str, names: usize) -> Option<&str> {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at + 1);
    let start = slashes.nth(names - 1);
    start.or_else(|| (path.split('/').count() == names).then_some(0)).map(|start| &path[start..])
}

/// What patterns are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    Name,
    Text,
}

impl Kind {
    /// Refuses what can match nothing.
    fn check(self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("an empty pattern matches nothing".into());
        }
        if self == Self::Path && text.contains("**") && !text.starts_with(['/', '*']) {
            return Err(format!("a path with ** begins with / or **/, as **/{text}"));
        }
        if self == Self::Name && !text.contains(SPECIAL) && text.len() > NAME {
            return Err(format!(
                "the kernel keeps at most {NAME} bytes of a name; use exe, or `{}*`",
                &text[..text.floor_char_boundary(NAME)]
            ));
        }
        Ok(())
    }
}

impl Patterns {
    fn compile<'a>(kind: Kind, texts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let all = texts.map(|text| One::compile(kind, text)).collect::<Result<Vec<_>, String>>()?;
        if all.is_empty() {
            return Err("an empty list matches nothing".into());
        }
        Ok(Self(all))
    }

    /// Returns true if one of them matches what is known of the process.
    #[must_use]
    pub fn match_any(&self, key: Key, subject: &Subject) -> bool {
        let Some(value) = subject.value(key) else { return false };
        let is_path = matches!(key, Key::Exe | Key::Cgroup);
        let options = MatchOptions { require_literal_separator: is_path, ..MatchOptions::new() };
        let matches = |value: &str| self.0.iter().any(|one| one.matches(value, options));
        match key {
            // What lies below a control group is of it.
            Key::Cgroup => ancestors(value).any(matches),
            _ => matches(value),
        }
    }
}

/// A path and those above it.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(above, _)| above))
        .filter(|path| !path.is_empty())
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|one| one.text.as_str()).collect();
        f.write_str(&texts.join("|"))
    }
}

/// Reads patterns that are compared with a path.
///
/// # Errors
/// They are none.
pub(super) fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Patterns>, D::Error> {
    from.deserialize_any(OneOrMore(Kind::Path)).map(Some)
}

/// Reads patterns that are compared with the kernel's name of a process.
///
/// # Errors
/// They are none.
pub(super) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Patterns>, D::Error> {
    from.deserialize_any(OneOrMore(Kind::Name)).map(Some)
}

/// Reads patterns that are compared with any text.
///
/// # Errors
/// They are none.
pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Patterns>, D::Error> {
    from.deserialize_any(OneOrMore(Kind::Text)).map(Some)
}

struct OneOrMore(Kind);

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Patterns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern as text in quotes, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Patterns, E> {
        Patterns::compile(self.0, [text].into_iter()).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Patterns, A::Error> {
        let mut texts: Vec<String> = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Patterns::compile(self.0, texts.iter().map(String::as_str)).map_err(A::Error::custom)
    }
}
