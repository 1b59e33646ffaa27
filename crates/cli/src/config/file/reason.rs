//! Reasons of the parser, in words for users: what to write instead.

use crate::complaint;

/// What the parser expects, as it says it, and what to write. Of our own types it says what to write itself
/// (`#[serde(expecting = "…")]`).
const EXPECTED: [(&str, &str); 5] = [
    ("a boolean", "give true or false"),
    ("f64", "give a number"),
    ("a string", "give a text in quotes"),
    ("a sequence", "give a list, such as [\"a\", \"b\"]; a rule begins with [[rule]]"),
    ("a map", "give a section, such as [class.NAME]"),
];

/// The reason for which a part of a file that is no configuration was refused.
pub(super) fn told(reason: &str) -> String {
    let reason = reason.replace('\n', " ");
    if let Some(rest) = reason.strip_prefix("unknown field ") {
        return unknown("key", rest);
    }
    if let Some(rest) = reason.strip_prefix("unknown variant ") {
        return unknown("value", rest);
    }
    if let Some(name) = reason.strip_prefix("missing field ") {
        return format!("{name} is missing; add it");
    }
    if reason == "duplicate key" {
        return "it is set twice; remove one".into();
    }
    let expected = reason.strip_prefix("invalid ").and_then(|rest| rest.rsplit_once(", expected "));
    let Some((_, what)) = expected else { return reason };
    let known = EXPECTED.iter().find(|(one, _)| *one == what);
    known.map_or_else(|| format!("give {what}"), |(_, remedy)| (*remedy).to_owned())
}

/// `x`, expected one of `a`, `b`: what was probably meant, else all that there are.
fn unknown(what: &str, rest: &str) -> String {
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let name = quoted.next().unwrap_or_default();
    let names: Vec<&str> = quoted.collect();
    match complaint::meant(name, &names) {
        Some(meant) => format!("no {what} {name:?}; did you mean {meant}?"),
        None => format!("no {what} {name:?}; there are {}", names.join(", ")),
    }
}

/// Returns the key of the value that begins at a byte of a text, if one does.
pub(super) fn key_of(text: &str, byte: usize) -> Option<&str> {
    let before = text.get(..byte)?.lines().next_back()?.trim_end().strip_suffix('=')?;
    let key = before.trim_end().rsplit([' ', '\t', '{', ',']).next()?;
    Some(key).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_what_to_write() {
        for (reason, wanted) in [
            ("invalid type: string \"yes\", expected a boolean", "give true or false"),
            ("invalid type: string \"x\", expected f64", "give a number"),
            ("invalid type: integer `5`, expected a string", "give a text in quotes"),
            (
                "unknown field `disc`, expected one of `disk`, `net`",
                "no key \"disc\"; did you mean disk?",
            ),
            ("unknown field `x`, expected `rule`", "no key \"x\"; there are rule"),
            (
                "unknown variant `keeep`, expected `keep` or `protect`",
                "no value \"keeep\"; did you mean keep?",
            ),
            ("missing field `match`", "`match` is missing; add it"),
            ("duplicate key", "it is set twice; remove one"),
            ("5 what?", "5 what?"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(told(reason), wanted);
        }
        let list = told("invalid type: map, expected a sequence");
        assert!(list.contains("[[rule]]"), "{list}");
    }

    #[test]
    fn values_are_told_with_their_keys() {
        let text = "[default]\ndisk = 5\nlimits = { a = 1, net-up = 2 }\nlist = [3]";
        let key = |value| key_of(text, text.find(value).unwrap());
        assert_eq!([key("5"), key("1"), key("2")], [Some("disk"), Some("a"), Some("net-up")]);
        assert_eq!([key("disk"), key("3"), key("[default")], [None; 3]);
        assert_eq!(key_of("\u{e4}", 1), None, "within a character");
    }
}
