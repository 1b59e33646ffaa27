//! The code of a source file: its text without comments, without literals and without what only tests compile.

/// What an item begins with that only tests compile.
const OF_TESTS: &[&str] = &["#[cfg(test", "#[cfg(all(test"];

/// Returns the code of a file that the program or library is built from.
pub(crate) fn code(text: &str) -> String {
    without_tests(&bare(text))
}

/// Returns the text with a space in place of each comment and each literal.
pub(crate) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_name = out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let skipped = comment(rest).or_else(|| literal(rest, in_name));
        out.push(if skipped.is_some() { ' ' } else { first });
        rest = &rest[skipped.unwrap_or(first.len_utf8()).min(rest.len())..];
    }
    out
}

/// Length of a comment that the text begins with.
fn comment(text: &str) -> Option<usize> {
    match text.get(..2)? {
        "//" => Some(text.find('\n').unwrap_or(text.len())),
        "/*" => Some(text.find("*/").map_or(text.len(), |end| end + 2)),
        _ => None,
    }
}

/// Length of a string or a character that the text begins with; the prefix of a string does not stand inside a name.
fn literal(text: &str, in_name: bool) -> Option<usize> {
    if text.starts_with('\'') {
        return character(text);
    }
    if text.starts_with('"') {
        return Some(string(text));
    }
    if in_name {
        return None;
    }
    let unprefixed = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let opened = unprefixed.trim_start_matches('#');
    let marks = unprefixed.len() - opened.len();
    let inner = opened.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(text.len() - inner.len() + length)
}

/// Length of a character; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut places = text.char_indices().skip(1);
    let (_, first) = places.next()?;
    if first == '\\' {
        places.next();
        return places.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    places.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns bare text without the items that only tests compile.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = OF_TESTS.iter().filter_map(|mark| rest.find(mark)).min() {
        out.push_str(&rest[..at]);
        rest = &rest[at + item(&rest[at..])..];
    }
    out + rest
}

/// Length of an item with its attributes: up to a semicolon or the end of its block, and not beyond the block that it is in.
fn item(code: &str) -> usize {
    let mut depth = 0_u32;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 && c == '}' {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(code("a // b\n/* c */d"), "a  \n d");
        assert_eq!(code(r#"f("a\"b", 'c', '\'', '"')"#), "f( ,  ,  ,  )");
        assert_eq!(code("r#\"a\"b\"# br\"c\" r\"d\""), "     ");
        assert_eq!(code("fn f<'a>(a: &'a str)"), "fn f<'a>(a: &'a str)");
        assert_eq!(code("r#type"), "r#type");
    }

    #[test]
    fn what_only_tests_compile_is_left_out() {
        let mark = OF_TESTS[0];
        assert_eq!(code(&format!("a{mark})]\nmod tests {{ b {{ }} }}\nc")), "a\nc");
        assert_eq!(code(&format!("a {mark})]\n#[path]\nmod tests;\nc")), "a \nc");
        assert_eq!(
            code(&format!("struct A {{ b: u8, {mark})] c: u8 }} d")),
            "struct A { b: u8, } d"
        );
    }
}
