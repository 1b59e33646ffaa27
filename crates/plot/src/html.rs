//! The frame of a page that needs nothing else: no script, no outside font, no network.

use crate::svg::escape;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;\
color:#222;background:#fff}table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;\
padding:.25em .6em;text-align:left}td.n{text-align:right}svg{max-width:100%;height:auto;\
display:block;margin:1em 0}.absent{color:#777}";

/// A whole page; `body` is HTML already, the title is text.
#[must_use]
pub fn document(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n{body}</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_text() {
        let page = document("<script>", "<p>body</p>\n");
        assert!(page.contains("<h1>&lt;script&gt;</h1>\n<p>body</p>\n"));
        assert!(!page.contains("<script"));
    }
}
