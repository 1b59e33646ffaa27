//! What is shown and selected.

mod keys;

use std::collections::{BTreeMap, VecDeque};

use discnice_ledger::policy::Resource;

pub use self::keys::Wish;
use super::action::{self, Target};
use super::input::{Input, Purpose};
use super::snapshot::{ClassSnapshot, ProcessSnapshot, Snapshot};
use super::style::Style;
use crate::binding::Binding;

/// Rates that are remembered for each class.
pub const HISTORY: usize = 64;

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The class at this place.
    Class(usize),
    /// The class at the first place and its process at the second.
    Process(usize, usize),
}

/// The order of the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By name.
    #[default]
    Name,
    /// By disk traffic, the largest first.
    Rate,
    /// By the number of threads that are held, the largest first.
    Sleep,
}

impl Order {
    const fn next(self) -> Self {
        match self {
            Self::Name => Self::Rate,
            Self::Rate => Self::Sleep,
            Self::Sleep => Self::Name,
        }
    }

    /// The name of the order.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Rate => "rate",
            Self::Sleep => "sleep",
        }
    }
}

/// Everything that is shown.
#[derive(Debug)]
pub struct Model {
    /// The characters that the terminal has.
    pub style: Style,
    now: Snapshot,
    before: Option<Snapshot>,
    history: BTreeMap<String, VecDeque<u64>>,
    selected: usize,
    /// The first line that is shown.
    pub top: usize,
    processes: bool,
    frozen: bool,
    order: Order,
    /// What names of classes or processes contain that are shown.
    filter: String,
    input: Input,
    message: Option<String>,
}

impl Model {
    /// Returns the model of a first snapshot.
    pub fn new(now: Snapshot, style: Style) -> Self {
        let mut model = Self {
            style,
            now: Snapshot { taken: now.taken, classes: Vec::new() },
            before: None,
            history: BTreeMap::new(),
            selected: 0,
            top: 0,
            processes: true,
            frozen: false,
            order: Order::default(),
            filter: String::new(),
            input: Input::default(),
            message: None,
        };
        model.update(now);
        model.before = None;
        model
    }

    /// Takes the next snapshot.
    pub fn update(&mut self, now: Snapshot) {
        let selected = self.target();
        self.history.retain(|name, _| now.classes.iter().any(|class| class.name == *name));
        for class in &now.classes {
            let rates = self.history.entry(class.name.clone()).or_default();
            if rates.len() == HISTORY {
                rates.pop_front();
            }
            rates.push_back(class.rate(Resource::Total));
        }
        self.before = Some(std::mem::replace(&mut self.now, now));
        self.arrange(selected.as_ref());
    }

    /// Sorts the classes, and keeps the selection on what was selected.
    fn arrange(&mut self, selected: Option<&Target>) {
        let mut classes = std::mem::take(&mut self.now.classes);
        classes.sort_by(|one, other| one.name.cmp(&other.name));
        match self.order {
            Order::Name => {}
            Order::Rate => {
                classes.sort_by_key(|class| std::cmp::Reverse(class.rate(Resource::Total)));
            }
            Order::Sleep => {
                let sleeping = |class: &ClassSnapshot| self.sleeping(class).unwrap_or(0.0);
                classes.sort_by(|one, other| sleeping(other).total_cmp(&sleeping(one)));
            }
        }
        self.now.classes = classes;
        self.follow(selected);
    }

    /// Keeps the selection on the class or process, wherever it is in the list now. If a process is not there any more, its
    /// place in the class stays selected, else the class.
    fn follow(&mut self, selected: Option<&Target>) {
        let lines = self.lines();
        let is_it = |line: &Line| self.target_of(*line).as_ref() == selected;
        let is_of_class = |line: &Line| {
            let (Line::Class(class) | Line::Process(class, _)) = *line;
            selected.is_some_and(|one| one.class == self.now.classes[class].name)
        };
        let still = || Some(self.selected).filter(|at| lines.get(*at).is_some_and(is_of_class));
        let it = lines.iter().position(is_it).or_else(still);
        if let Some(place) = it.or_else(|| lines.iter().position(is_of_class)) {
            self.selected = place;
        }
        self.selected = self.selected.min(lines.len().saturating_sub(1));
    }

    /// Whether looking is suspended.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The first line of the help, if that is shown instead of the list.
    pub fn help(&mut self) -> Option<&mut usize> {
        match &mut self.input {
            Input::Help(first) => Some(first),
            _ => None,
        }
    }

    /// The order of the classes.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether a class is shown: its name or that of one of its processes contains the filter.
    fn is_shown(&self, class: &ClassSnapshot) -> bool {
        let contains = |name: &str| name.to_lowercase().contains(&self.filter.to_lowercase());
        contains(&class.name) || class.processes.iter().any(|process| contains(&process.name))
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
        let all = self.now.classes.iter().enumerate();
        for (index, class) in all.filter(|(_, class)| self.is_shown(class)) {
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

    /// Earlier rates of a class, the latest last.
    pub fn history(&self, class: &ClassSnapshot) -> impl DoubleEndedIterator<Item = u64> {
        self.history.get(&class.name).into_iter().flatten().copied()
    }

    /// The time between the two last looks, in seconds.
    fn span(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        Some(self.now.taken.since(before.taken).as_secs_f64()).filter(|span| *span > 0.0)
    }

    /// The class as it was at the look before.
    fn earlier(&self, class: &ClassSnapshot) -> Option<&ClassSnapshot> {
        self.before.as_ref()?.classes.iter().find(|one| one.name == class.name)
    }

    /// What the class waits for: now, or, if it slept in the last interval, at the beginning of that.
    pub fn binding(&self, class: &ClassSnapshot) -> Option<Binding> {
        let slept = self.sleeping(class).is_some_and(|threads| threads > 0.0);
        class.binding.or_else(|| self.earlier(class)?.binding.filter(|_| slept))
    }

    /// Threads of the class that slept, on average over the last interval.
    pub fn sleeping(&self, class: &ClassSnapshot) -> Option<f64> {
        let before = self.earlier(class)?;
        Some(class.waited.minus(before.waited).as_secs_f64() / self.span()?)
    }

    /// Bytes a second that a process read and wrote in the last interval, and how many of its
    /// threads slept.
    pub fn process_rates(
        &self,
        class: &ClassSnapshot,
        process: &ProcessSnapshot,
    ) -> Option<(u64, u64, f64)> {
        let before = self.earlier(class)?;
        let before = before.processes.iter().find(|one| one.id == process.id)?;
        let span = self.span()?;
        let rate = |now: u64, before: u64| (now.saturating_sub(before) as f64 / span) as u64;
        let slept = process.waited.minus(before.waited).as_secs_f64() / span;
        Some((rate(process.read, before.read), rate(process.written, before.written), slept))
    }

    /// The last line: a message, what is being typed or asked, or what keys do.
    pub fn footer(&self) -> String {
        match (&self.input, &self.message) {
            (Input::Line(Purpose::Limit(class), typed), _) => {
                format!("limit of {class} ([r|w|ops|meta|net|up|down] RATE): {typed}_")
            }
            (Input::Line(Purpose::Filter, typed), _) => format!("show names with: {typed}_"),
            (Input::End(target), _) => self.question(target),
            (Input::Help(_), _) => "arrows scroll, any other key goes back".into(),
            (Input::List, Some(message)) => message.clone(),
            (Input::List, None) => {
                let freeze = if self.frozen { "SPACE look on" } else { "SPACE freeze" };
                let keys = "q quit  ? help  l limit  z pause  K end  s sort  / filter";
                format!("{keys}  {freeze}")
            }
        }
    }

    fn question(&self, target: &Target) -> String {
        let Target { class, process } = target;
        let of_class = self.now.classes.iter().find(|one| one.name == *class);
        match process {
            Some(process) => format!("end process {process} of {class}? y: yes, any other key: no"),
            None => {
                let count = action::processes(of_class.map_or(0, |class| class.processes.len()));
                format!("end {count} of {class}? y: yes, any other key: no")
            }
        }
    }

    /// What is selected.
    pub fn target(&self) -> Option<Target> {
        self.target_of(*self.lines().get(self.selected)?)
    }

    /// What a line of the list shows.
    fn target_of(&self, line: Line) -> Option<Target> {
        let (Line::Class(class) | Line::Process(class, _)) = line;
        let class = self.now.classes.get(class)?;
        let process = match line {
            Line::Class(_) => None,
            Line::Process(_, place) => Some(class.processes.get(place)?.id),
        };
        Some(Target { class: class.name.clone(), process })
    }
}
