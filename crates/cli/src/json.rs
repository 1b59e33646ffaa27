//! JSON for machines, of which thousands of elements are written by several threads.

use std::io;

use serde::{Serialize, Serializer as _};
use serde_json::Serializer;
use serde_json::ser::{Formatter as _, PrettyFormatter};

/// An array as `serde_json::to_string_pretty` writes it that stands `depth` deep in other values. What is iterated
/// over is made one by one, and not kept.
///
/// # Errors
/// An element has no JSON.
pub(crate) fn array<T: Serialize>(
    elements: impl Iterator<Item = T>,
    depth: usize,
) -> serde_json::Result<String> {
    let mut formatter = PrettyFormatter::new();
    for _ in 0..depth {
        formatter.begin_object(&mut io::sink()).map_err(serde_json::Error::io)?;
    }
    let mut text = Vec::new();
    Serializer::with_formatter(&mut text, formatter).collect_seq(elements)?;
    String::from_utf8(text).map_err(|error| serde_json::Error::io(io::Error::other(error)))
}

/// One array of several of the same depth.
pub(crate) fn join(arrays: impl IntoIterator<Item = String>, depth: usize) -> String {
    let end = format!("\n{:1$}]", "", 2 * depth);
    let bodies = arrays.into_iter().filter_map(|mut array| {
        array.truncate(array.strip_suffix(&end)?.len());
        Some(array)
    });
    let joined = bodies.reduce(|mut before, next| {
        before.push(',');
        before.push_str(next.trim_start_matches('['));
        before
    });
    joined.map_or_else(|| "[]".into(), |array| array + &end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_written_like_the_whole() {
        let every = [json!({"a": [1], "b": {}}), json!([]), json!("[\n"), json!(2.5)];
        let whole = serde_json::to_string_pretty(&json!({"all": every})).unwrap();
        for cut in 0..=every.len() {
            let parts = [&every[..cut], &every[cut..]].map(|part| array(part.iter(), 1).unwrap());
            assert_eq!(format!("{{\n  \"all\": {}\n}}", join(parts, 1)), whole);
        }
        assert_eq!(join([array([0; 0].iter(), 0).unwrap()], 0), "[]");
    }
}
