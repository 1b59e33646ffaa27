//! A page on a terminal.

use std::fmt::Write;

use discnice_plot::svg::short;
use discnice_plot::{Cell, Chart, Heat};

use super::page::{Content, Page};
use super::verdict::Row;

/// Prints a page.
#[must_use]
pub fn print(page: &Page) -> String {
    let paper = &page.paper;
    let mut text = format!(
        "{}: {} {} (section {}), {}\n",
        page.name, paper.paper, paper.item, paper.section, paper.title
    );
    // Writing to a string cannot fail.
    match &page.content {
        Content::Absent(reason) => {
            let _ = writeln!(text, "  {reason}");
        }
        Content::Measured(measured) => {
            text.push_str(&table(&measured.rows));
            for plot in &measured.plots {
                if let Chart::Heat(heat) = &plot.chart {
                    let _ = write!(text, "  {}\n{}", plot.title, shaded(heat));
                }
            }
            for remark in &measured.remarks {
                let _ = writeln!(text, "  {remark}");
            }
            let _ = writeln!(text, "  {}: {}", measured.verdict.word(), paper.phenomenon);
        }
    }
    text
}

/// One line for each page: its name, whether the phenomenon holds, what it is.
#[must_use]
pub fn summary(pages: &[Page]) -> String {
    let mut text = String::new();
    for page in pages {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<24}  {:<19}  {}", page.name, page.verdict(), page.paper.title);
    }
    text
}

/// One line for each table and figure with its verdict in each of several runs; below those that differ, the
/// numbers that make them differ. Also returns how many do.
#[must_use]
pub fn comparison(runs: &[Vec<Page>]) -> (String, usize) {
    let (mut lines, mut differing) = (Vec::new(), 0);
    for place in 0..runs.iter().map(Vec::len).min().unwrap_or(0) {
        let pages: Vec<&Page> = runs.iter().filter_map(|pages| pages.get(place)).collect();
        let Some(first) = pages.first() else { continue };
        let verdicts = pages.iter().map(|page| page.verdict().to_owned());
        lines.push(std::iter::once(first.name.to_owned()).chain(verdicts).collect());
        if pages.iter().any(|page| page.verdict() != first.verdict()) {
            differing += 1;
            lines.extend(numbers(&pages));
        }
    }
    (aligned(&lines, |_| false, ""), differing)
}

/// The numbers of one table or figure that were judged differently in several runs: label, medians.
fn numbers(pages: &[&Page]) -> Vec<Vec<String>> {
    let rows = pages.iter().map(|page| match &page.content {
        Content::Measured(measured) => measured.rows.as_slice(),
        Content::Absent(_) => &[],
    });
    let rows: Vec<&[Row]> = rows.collect();
    let longest = rows.iter().max_by_key(|rows| rows.len()).copied().unwrap_or_default();
    let mut lines = Vec::new();
    for (place, row) in longest.iter().enumerate() {
        let found: Vec<Option<&Row>> = rows.iter().map(|rows| rows.get(place)).collect();
        if found.iter().all(|other| other.is_some_and(|other| other.verdict == row.verdict)) {
            continue;
        }
        let median = |row: &Option<&Row>| row.and_then(|row| row.median).map_or("-".into(), short);
        let label = format!("  {} [{}]", row.label, row.bounds);
        lines.push(std::iter::once(label).chain(found.iter().map(median)).collect());
    }
    lines
}

fn table(rows: &[Row]) -> String {
    let head = ["", "unit", "paper", "measured", "range", ""].map(str::to_owned).to_vec();
    let lines: Vec<Vec<String>> =
        std::iter::once(head).chain(rows.iter().map(|row| cells(row).to_vec())).collect();
    aligned(&lines, |column| (2..5).contains(&column), "  ")
}

/// The cells of a heat map: ratio and note.
fn shaded(heat: &Heat) -> String {
    let cell = |cell: &Option<Cell>| match cell {
        Some(cell) => format!("{}  {}", short(cell.ratio), cell.note),
        None => "-".into(),
    };
    let row = |(name, cells): &(String, Vec<Option<Cell>>)| {
        std::iter::once(name.clone()).chain(cells.iter().map(cell)).collect()
    };
    let head = std::iter::once(String::new()).chain(heat.columns.iter().cloned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(heat.rows.iter().map(row)).collect();
    aligned(&lines, |column| column > 0, "    ")
}

/// Lines of columns that are as wide as they must be, some of them flush right.
fn aligned(lines: &[Vec<String>], is_right: impl Fn(usize) -> bool, indent: &str) -> String {
    let count = |cell: &String| cell.chars().count();
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(count).max();
    let mut text = String::new();
    for cells in lines {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let gap = if column == 0 { indent } else { "  " };
            let width = width(column).unwrap_or(0);
            // Writing to a string cannot fail.
            let _ = match is_right(column) {
                true => write!(line, "{gap}{cell:>width$}"),
                false => write!(line, "{gap}{cell:<width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The columns that every form of a report has: label, unit, paper, measured, range, verdict.
pub fn cells(row: &Row) -> [String; 6] {
    let dash = || "-".to_owned();
    let range = match row.range {
        Some((low, high)) if row.rounds > 1 => format!("{} to {}", short(low), short(high)),
        _ => dash(),
    };
    let verdict = match (row.verdict.word(), row.bounds.as_str()) {
        (word, "") => word.to_owned(),
        (word, bounds) => format!("{word} ({bounds})"),
    };
    [
        row.label.clone(),
        row.unit.clone(),
        row.paper.map_or_else(dash, short),
        row.median.map_or_else(dash, short),
        range,
        verdict,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::page::Measured;
    use super::super::verdict::Verdict;
    use super::*;
    use crate::frame::paper::Paper;

    fn page(verdict: Verdict, median: f64) -> Page {
        let row = Row {
            label: "time".into(),
            unit: "s".into(),
            paper: None,
            median: Some(median),
            range: None,
            rounds: 1,
            bounds: "at most 2".into(),
            verdict,
        };
        let rows = vec![row];
        let content =
            Content::Measured(Measured { rows, verdict, plots: Vec::new(), remarks: Vec::new() });
        let paper = crate::experiments::all()[0].paper;
        Page { name: "table", paper: Paper::parse(paper).expect("a paper file"), content }
    }

    #[test]
    fn runs_side_by_side() {
        let one = || vec![page(Verdict::Holds, 1.0)];
        let alike = comparison(&[one(), one()]);
        assert_eq!(alike, ("table  holds  holds\n".into(), 0));
        let (text, differing) = comparison(&[one(), vec![page(Verdict::Fails, 3.0)]]);
        let cells = |line: &str| {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells.map(str::to_owned).collect::<Vec<_>>()
        };
        let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
        assert_eq!(differing, 1);
        assert_eq!(lines[0], ["table", "holds", "does not hold"]);
        assert_eq!(lines[1], ["time [at most 2]", "1.00", "3.00"]);
    }
}
