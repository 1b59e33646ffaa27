//! How it is drawn: a head line, the list, and a line of what keys do.

use discnice_escape::{Foreign, visible};
use discnice_ledger::policy::Resource;
use discnice_units::Rate;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};
use unicode_width::UnicodeWidthChar;

use super::action;
use super::model::{HISTORY, Line, Model, Order};
use super::snapshot::{ClassSnapshot, ProcessSnapshot};
use crate::binding::Binding;
use crate::output::counted;

/// The smallest terminal that shows anything.
const WIDTH: u16 = 60;
const HEIGHT: u16 = 6;
/// Lines that are left to the head line and the list, however long what is told below them is.
const LIST: u16 = 3;

/// What keys do, and what the columns mean.
pub(super) const HELP: &str = "
arrows j k  select; PgUp, PgDn, Home, End go further
l           type a limit: 5M; r 5M (reading), w 5M, ops 100,
            meta 100, net 5M, up 1M, down 1M; unlimited
z           pause the class or process, or let it go on
K           end it with SIGTERM, after a question
s           sort by name, rate or sleep
/           show only names with this in them; ESC: all
p           processes on and off        SPACE  freeze
q           quit

ALLOWED     the most telling limit; + if there are others
SLEEP       threads held on average: 250% is 2.5 of them
WAIT        what the next call waits for: a limit (disk,
            read, writ, iops, meta, net, up, down), others
            (give; keep: as far as its least rate lets it),
            memory (mem), a condition (cond), more disk
            total (used), `discnice resume` (stop)";

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let area = frame.area();
    if area.width < WIDTH || area.height < HEIGHT {
        let text = format!(
            "discnice top needs {WIDTH} columns and {HEIGHT} lines; this terminal has {} and {}",
            area.width, area.height
        );
        frame.render_widget(paragraph(&text).wrap(Wrap { trim: true }), area);
        return;
    }
    let told = lines_of(&visible(&model.footer()), area.width, area.height - LIST);
    let below = Constraint::Length(told.len() as u16);
    let [head, list, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), below]).areas(area);
    frame.render_widget(paragraph(&summary(model)), head);
    if let Some(first) = model.help() {
        let hidden = HELP.lines().count().saturating_sub(list.height.into());
        *first = hidden.min(*first);
        frame.render_widget(Paragraph::new(HELP).scroll((*first as u16, 0)), list);
    } else {
        draw_list(frame, model, list);
    }
    let dim = Look::default().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(told.join("\n")).style(dim), foot);
}

/// A text in lines of so many columns, at most `most` of them; of a longer text the end is left out.
fn lines_of(text: &str, columns: u16, most: u16) -> Vec<String> {
    let (mut lines, mut taken) = (vec![String::new()], 0);
    for letter in text.chars() {
        let width = letter.width().unwrap_or(0);
        taken += width;
        if taken > usize::from(columns) {
            lines.push(String::new());
            taken = width;
        }
        if let Some(line) = lines.last_mut() {
            line.push(letter);
        }
    }
    lines.truncate(usize::from(most));
    lines
}

fn summary(model: &Model) -> String {
    let classes = &model.now().classes;
    let processes: usize = classes.iter().map(|class| class.processes.len()).sum();
    let sum = |one| rate(classes.iter().map(|class| class.rate(one)).sum());
    format!(
        "discnice  {}  {}  reading {}  writing {}{}",
        counted(classes.len(), "class", "classes"),
        action::processes(processes),
        sum(Resource::Read),
        sum(Resource::Write),
        match model.order() {
            Order::Name => String::new(),
            order => format!("  by {}", order.name()),
        }
    )
}

fn rate(units: u64) -> String {
    Rate::per_second(units.min(u64::MAX - 1)).to_string()
}

fn draw_list(frame: &mut Frame<'_>, model: &mut Model, area: Rect) {
    let lines = model.lines();
    let height = usize::from(area.height.saturating_sub(1));
    let selected = model.selected();
    model.top = model.top.clamp((selected + 1).saturating_sub(height), selected);
    // What does not fit into the columns is given to names and history.
    let spare = usize::from(area.width.saturating_sub(WIDTH));
    let name = 15 + spare / 3;
    let history = (spare - spare / 3).min(HISTORY);
    let rows = lines.iter().enumerate().skip(model.top).take(height).map(|(place, line)| {
        let row = match *line {
            Line::Class(class) => class_row(model, &model.now().classes[class], name, history),
            Line::Process(class, process) => {
                let class = &model.now().classes[class];
                process_row(model, class, &class.processes[process], name)
            }
        };
        if place == selected {
            row.style(Look::default().add_modifier(Modifier::REVERSED))
        } else {
            row
        }
    });
    let widths = [name, 11, 10, 10, 5, 4].map(|width| width as u16);
    let widths = widths.into_iter().map(Constraint::Length).chain([Constraint::Min(0)]);
    let bold = Look::default().add_modifier(Modifier::BOLD);
    let head = ["CLASS", "    ALLOWED", "   READING", "   WRITING", "SLEEP", "WAIT", "ALL DISK"];
    let table = Table::new(rows, widths).header(Row::new(head).style(bold)).column_spacing(1);
    frame.render_widget(table, area);
    if lines.is_empty() {
        let middle = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(paragraph(nothing(model)), middle);
    }
}

fn nothing(model: &Model) -> &'static str {
    if model.now().classes.is_empty() { "Nothing is limited." } else { "No name has that in it." }
}

fn class_row(model: &Model, class: &ClassSnapshot, width: usize, history: usize) -> Row<'static> {
    let allowed = allowed(class);
    let sleeping = model.sleeping(class).map_or_else(String::new, threads);
    let binding = model.binding(class);
    let state = binding.map_or("", Binding::mark);
    let colour = if binding.is_some() { Color::Yellow } else { Color::Reset };
    Row::new([
        cut(&class.name, width),
        format!("{allowed:>11}"),
        format!("{:>10}", rate(class.rate(Resource::Read))),
        format!("{:>10}", rate(class.rate(Resource::Write))),
        format!("{sleeping:>5}"),
        format!("{state:<4}"),
        spark(model, class, history),
    ])
    .style(Look::default().fg(colour))
}

fn process_row(
    model: &Model,
    class: &ClassSnapshot,
    process: &ProcessSnapshot,
    width: usize,
) -> Row<'static> {
    let name = cut(&format!("  {} {}", process.id, process.name), width);
    if process.escape.is_some() {
        let red = Look::default().fg(Color::Red);
        return Row::new([name, " NOT HELD".to_owned()]).style(red);
    }
    let (read, written, slept) = model.process_rates(class, process).unwrap_or_default();
    Row::new([
        name,
        String::new(),
        format!("{:>10}", rate(read)),
        format!("{:>10}", rate(written)),
        format!("{:>5}", threads(slept)),
    ])
}

/// How many threads slept on average, as a share of one.
fn threads(sleeping: f64) -> String {
    format!("{:.0}%", 100.0 * sleeping)
}

/// The threshold that says most, with a `+` if there are others.
fn allowed(class: &ClassSnapshot) -> String {
    let mut set = Resource::ALL.into_iter().filter(|one| !class.limits.rate(*one).is_unlimited());
    let Some(first) = set.next() else { return "unlimited".into() };
    let number = class.limits.rate(first);
    let text = if first.is_bytes() { number.to_string() } else { format!("{}/s", number.get()) };
    if set.next().is_some() { format!("{text}+") } else { text }
}

/// The class's disk traffic so far, each bar one look, as a share of the threshold or of the most.
fn spark(model: &Model, class: &ClassSnapshot, width: usize) -> String {
    let bars = model.style.bars();
    let limit = class.limits.rate(Resource::Total);
    let most = model.history(class).max().unwrap_or(0);
    let full = if limit.is_unlimited() { most } else { most.max(limit.get()) };
    let shown = model.history(class).rev().take(width).map(|rate| match (rate, full) {
        (0, _) | (_, 0) => bars[0],
        (rate, full) => bars[1 + (u128::from(rate) * 6 / u128::from(full)) as usize],
    });
    let shown: Vec<char> = shown.collect();
    shown.into_iter().rev().collect()
}

/// Cut to a width, with what a terminal would obey made visible.
fn cut(text: &str, width: usize) -> String {
    format!("{:.width$}", Foreign::text(text))
}

/// Text of one line or, where it is wrapped, of several.
fn paragraph(text: &str) -> Paragraph<'static> {
    Paragraph::new(visible(text).into_owned())
}
