//! The screen as a picture for the documentation, drawn from what the tests draw.

use std::fmt::Write;

use discnice_plot::svg::escape;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Size of a character.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const BACKGROUND: &str = "#1c1c1c";
const TEXT: &str = "#dddddd";

/// The screen's contents as SVG.
pub fn svg(buffer: &Buffer) -> String {
    let (columns, lines) = (buffer.area.width, buffer.area.height);
    let (width, height) = (f32::from(columns) * WIDTH + 16.0, f32::from(lines) * HEIGHT + 16.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{BACKGROUND}\"/>\n"
    );
    for line in 0..lines {
        let mut column = 0;
        while column < columns {
            let first = &buffer[(column, line)];
            let alike = |place: &u16| looks_like(&buffer[(*place, line)], first);
            let end = (column..columns).take_while(alike).count() as u16 + column;
            let run: String = (column..end).map(|place| buffer[(place, line)].symbol()).collect();
            draw_run(&mut text, (column, line), &run, first);
            column = end;
        }
    }
    text.push_str("</svg>\n");
    text
}

fn looks_like(one: &Cell, other: &Cell) -> bool {
    one.fg == other.fg && one.modifier == other.modifier
}

fn draw_run(text: &mut String, (column, line): (u16, u16), run: &str, look: &Cell) {
    let (x, y) = (f32::from(column) * WIDTH + 8.0, f32::from(line) * HEIGHT + 8.0);
    let width = run.chars().count() as f32 * WIDTH;
    let colour = match look.fg {
        Color::Yellow => "#e5c07b",
        Color::Red => "#f07178",
        _ => TEXT,
    };
    let reversed = look.modifier.contains(Modifier::REVERSED);
    // Writing to a string cannot fail.
    if reversed {
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT:.0}\" \
             fill=\"{colour}\"/>"
        );
    }
    if run.trim().is_empty() {
        return;
    }
    let fill = if reversed { BACKGROUND } else { colour };
    let bold = if look.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let dim = if look.modifier.contains(Modifier::DIM) { " opacity=\"0.7\"" } else { "" };
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" \
         fill=\"{fill}\"{bold}{dim}>{}</text>",
        y + HEIGHT * 0.75,
        escape(run)
    );
}
