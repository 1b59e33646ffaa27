//! All pages as one HTML file that needs nothing else.

use std::fmt::Write;

use discnice_plot::html::document;
use discnice_plot::svg::{draw, escape};

use super::head::Head;
use super::page::{Content, Measured, Page};
use super::text::cells;

/// Prints the report.
#[must_use]
pub fn print(head: &Head, pages: &[Page]) -> String {
    let mut text = String::from("<ul>\n");
    // Writing to a string cannot fail.
    for line in head.lines() {
        let _ = writeln!(text, "<li>{}</li>", escape(&line));
    }
    text.push_str(
        "</ul>\n<table><tr><th>name</th><th>paper</th><th>shows</th><th>result</th></tr>\n",
    );
    for page in pages {
        let paper = &page.paper;
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1} {2}</td><td>{3}</td><td>{4}</td></tr>",
            escape(page.name),
            escape(&paper.paper),
            escape(&paper.item),
            escape(&paper.title),
            escape(page.verdict())
        );
    }
    text.push_str("</table>\n");
    for page in pages {
        section(&mut text, page);
    }
    document("Tables and figures, measured", &text)
}

fn section(text: &mut String, page: &Page) {
    let paper = &page.paper;
    let _ = writeln!(
        text,
        "<h2 id=\"{0}\">{0}</h2>\n<p>{1} {2}, section {3}: {4}. {5}</p>",
        escape(page.name),
        escape(&paper.paper),
        escape(&paper.item),
        escape(&paper.section),
        escape(&paper.title),
        escape(&paper.phenomenon)
    );
    match &page.content {
        Content::Absent(reason) => {
            let _ = writeln!(text, "<p class=\"absent\">{}</p>", escape(reason));
        }
        Content::Measured(measured) => results(text, measured),
    }
}

fn results(text: &mut String, measured: &Measured) {
    text.push_str("<table><tr><th></th><th>unit</th><th>paper</th><th>measured</th>");
    text.push_str("<th>range</th><th></th></tr>\n");
    for row in &measured.rows {
        text.push_str("<tr>");
        for (column, cell) in cells(row).iter().enumerate() {
            let class = if (2..5).contains(&column) { " class=\"n\"" } else { "" };
            let _ = write!(text, "<td{class}>{}</td>", escape(cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n<ul>\n");
    for remark in &measured.remarks {
        let _ = writeln!(text, "<li>{}</li>", escape(remark));
    }
    text.push_str("</ul>\n");
    for plot in &measured.plots {
        text.push_str(&draw(plot));
    }
}
