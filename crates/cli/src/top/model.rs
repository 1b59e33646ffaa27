//! What is shown and selected, and how keys change it.

use std::collections::{BTreeMap, VecDeque};

use discnice_policy::Resource;
use discnice_units::Rate;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::snapshot::{Class, Process, Snapshot};
use super::view::Style;
use crate::classes;
use crate::commands::class;

/// Rates that are remembered for each class.
pub const HISTORY: usize = 64;
/// No rate needs more characters.
const LONGEST: usize = 24;

/// What a key asks for that the model cannot do by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// End the view.
    Quit,
    /// Stop it.
    Suspend,
    /// Change a limit.
    Limit(Change),
}

/// A new threshold of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The class's name.
    pub class: String,
    /// Of what.
    pub resource: Resource,
    /// How much.
    pub rate: Rate,
}

impl Change {
    /// Does it; returns what to tell the user.
    pub fn apply(&self) -> String {
        let done = || -> anyhow::Result<()> {
            let Some(found) = classes::find(&self.class) else {
                anyhow::bail!("class {} is gone", self.class);
            };
            class::apply(&found, found.class.limits().with(self.resource, self.rate))
        };
        match done() {
            Ok(()) => format!("{}: {} {}", self.class, self.resource.option(), self.rate),
            Err(error) => error.to_string(),
        }
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The class at this place.
    Class(usize),
    /// The class at the first place and its process at the second.
    Process(usize, usize),
}

/// The resources with thresholds that can be typed, and the marks that `status` shows.
const MARKS: [(&str, Resource); 8] = [
    ("", Resource::Total),
    ("r", Resource::Read),
    ("w", Resource::Write),
    ("ops", Resource::Operations),
    ("meta", Resource::Metadata),
    ("net", Resource::Net),
    ("up", Resource::NetUp),
    ("down", Resource::NetDown),
];

/// Everything that is shown.
#[derive(Debug)]
pub struct Model {
    /// How.
    pub style: Style,
    now: Snapshot,
    before: Option<Snapshot>,
    history: BTreeMap<String, VecDeque<u64>>,
    selected: usize,
    /// The first line that is shown.
    pub top: usize,
    processes: bool,
    paused: bool,
    /// What has been typed of a new limit, while it is being typed.
    typed: Option<String>,
    message: Option<String>,
}

impl Model {
    /// Shows this first.
    pub fn new(now: Snapshot, style: Style) -> Self {
        let mut model = Self {
            style,
            now: Snapshot { taken: now.taken, classes: Vec::new() },
            before: None,
            history: BTreeMap::new(),
            selected: 0,
            top: 0,
            processes: true,
            paused: false,
            typed: None,
            message: None,
        };
        model.update(now);
        model.before = None;
        model
    }

    /// Shows this next.
    pub fn update(&mut self, now: Snapshot) {
        let selected = self.selected_class().map(|class| class.name.clone());
        self.history
            .retain(|name, _| now.classes.binary_search_by(|class| class.name.cmp(name)).is_ok());
        for class in &now.classes {
            let rates = self.history.entry(class.name.clone()).or_default();
            if rates.len() == HISTORY {
                rates.pop_front();
            }
            rates.push_back(class.rate(Resource::Total));
        }
        self.before = Some(std::mem::replace(&mut self.now, now));
        self.follow(selected.as_deref());
    }

    /// Keeps the selection on the class, wherever it is in the list now.
    fn follow(&mut self, name: Option<&str>) {
        let lines = self.lines();
        let is_it = |line: &Line| match *line {
            Line::Class(class) => Some(self.now.classes[class].name.as_str()) == name,
            Line::Process(..) => false,
        };
        let still = lines.get(self.selected).is_some_and(|line| match *line {
            Line::Class(class) | Line::Process(class, _) => {
                Some(self.now.classes[class].name.as_str()) == name
            }
        });
        if !still && let Some(place) = lines.iter().position(is_it) {
            self.selected = place;
        }
        self.selected = self.selected.min(lines.len().saturating_sub(1));
    }

    /// Whether looking is suspended.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// What is shown.
    pub fn now(&self) -> &Snapshot {
        &self.now
    }

    /// All lines of the list.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, class) in self.now.classes.iter().enumerate() {
            lines.push(Line::Class(index));
            let shown = if self.processes { class.processes.len() } else { 0 };
            lines.extend((0..shown).map(|process| Line::Process(index, process)));
        }
        lines
    }

    /// The place of the selected line.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the selected class, or that of the selected process.
    pub fn selected_class(&self) -> Option<&Class> {
        match *self.lines().get(self.selected)? {
            Line::Class(class) | Line::Process(class, _) => self.now.classes.get(class),
        }
    }

    /// Earlier rates of a class, the latest last.
    pub fn history(&self, class: &Class) -> impl DoubleEndedIterator<Item = u64> {
        self.history.get(&class.name).into_iter().flatten().copied()
    }

    /// The time between the two last looks, in seconds.
    fn span(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        Some(self.now.taken.minus(before.taken).as_secs_f64()).filter(|span| *span > 0.0)
    }

    /// Threads of the class that slept, on average over the last interval.
    pub fn sleeping(&self, class: &Class) -> Option<f64> {
        let before = self.before.as_ref()?.classes.iter().find(|one| one.name == class.name)?;
        Some(class.waited.minus(before.waited).as_secs_f64() / self.span()?)
    }

    /// Bytes a second that a process read and wrote in the last interval, and how many of its
    /// threads slept.
    pub fn process_rates(&self, class: &Class, process: &Process) -> Option<(u64, u64, f64)> {
        let before = self.before.as_ref()?.classes.iter().find(|one| one.name == class.name)?;
        let before = before.processes.iter().find(|one| one.id == process.id)?;
        let span = self.span()?;
        let rate = |now: u64, before: u64| (now.saturating_sub(before) as f64 / span) as u64;
        let slept = process.waited.minus(before.waited).as_secs_f64() / span;
        Some((rate(process.read, before.read), rate(process.written, before.written), slept))
    }

    /// The last line: a message, what is being typed, or what keys do.
    pub fn footer(&self) -> String {
        match (&self.typed, &self.message) {
            (Some(typed), _) => {
                let class = self.selected_class().map_or("", |class| &class.name);
                format!("limit of {class} ([r|w|ops|meta|net|up|down] RATE): {typed}_")
            }
            (None, Some(message)) => message.clone(),
            (None, None) => {
                let pause = if self.paused { "SPACE go on" } else { "SPACE pause" };
                format!("q quit  arrows select  l limit  p processes  {pause}")
            }
        }
    }

    /// What a key does.
    pub fn press(&mut self, key: KeyEvent) -> Option<Wish> {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Wish::Quit),
                KeyCode::Char('z') => Some(Wish::Suspend),
                _ => None,
            };
        }
        if self.typed.is_some() { self.press_typing(key.code) } else { self.press_list(key.code) }
    }

    fn press_list(&mut self, key: KeyCode) -> Option<Wish> {
        let last = self.lines().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('p') => {
                let name = self.selected_class().map(|class| class.name.clone());
                self.processes = !self.processes;
                self.selected = 0;
                self.follow(name.as_deref());
            }
            KeyCode::Char('l') if self.selected_class().is_some() => {
                self.typed = Some(String::new());
            }
            _ => {}
        }
        None
    }

    fn press_typing(&mut self, key: KeyCode) -> Option<Wish> {
        let typed = self.typed.as_mut()?;
        match key {
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Char(letter) if typed.len() < LONGEST && letter.is_ascii_graphic() => {
                typed.push(letter);
            }
            KeyCode::Char(' ') if typed.len() < LONGEST => typed.push(' '),
            KeyCode::Enter => {
                let typed = self.typed.take()?;
                let class = self.selected_class()?.name.clone();
                match parse(&typed) {
                    Ok((resource, rate)) => {
                        return Some(Wish::Limit(Change { class, resource, rate }));
                    }
                    Err(why) => self.say(why),
                }
            }
            _ => {}
        }
        None
    }
}

/// `5M`, `r 5M`, `ops 100`.
fn parse(typed: &str) -> Result<(Resource, Rate), String> {
    let words: Vec<&str> = typed.split_whitespace().collect();
    let (mark, rate) = match words[..] {
        [rate] => ("", rate),
        [mark, rate] => (mark, rate),
        _ => return Err("give a rate such as 5M or `unlimited`".into()),
    };
    let known = MARKS.iter().find(|(name, _)| *name == mark);
    let (_, resource) =
        known.ok_or_else(|| format!("{mark:?} is none of r, w, ops, meta, net, up and down"))?;
    let rate = rate.parse().map_err(|error| format!("{rate}: {error}"))?;
    Ok((*resource, rate))
}
