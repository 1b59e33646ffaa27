//! How keys change what is shown.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Model;
use crate::top::action::{Action, Change};
use crate::top::input::{self, Input, Purpose, Typed};

/// What a key asks for that the model cannot do by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// End the view.
    Quit,
    /// Stop it.
    Suspend,
    /// Do something, and say what became of it.
    Do(Action),
}

impl Model {
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
        match std::mem::take(&mut self.input) {
            Input::List => self.press_list(key.code),
            Input::Help(first) => {
                // How far it goes is known when it is drawn.
                self.input = moved(first, usize::MAX, key.code).map_or(Input::List, Input::Help);
                None
            }
            Input::End(target) => {
                (key.code == KeyCode::Char('y')).then_some(Wish::Do(Action::End(target)))
            }
            Input::Line(purpose, mut line) => match input::edit(&mut line, key.code) {
                Typed::Given => None,
                Typed::More => {
                    self.input = Input::Line(purpose, line);
                    None
                }
                Typed::Done => self.take_line(purpose, line),
            },
        }
    }

    fn press_list(&mut self, key: KeyCode) -> Option<Wish> {
        let last = self.lines().len().saturating_sub(1);
        let selected = self.target();
        if let Some(place) = moved(self.selected, last, key) {
            self.selected = place;
            return None;
        }
        match key {
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                self.follow(selected.as_ref());
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Char(' ') => self.frozen = !self.frozen,
            KeyCode::Char('p') => {
                self.processes = !self.processes;
                self.follow(selected.as_ref());
            }
            KeyCode::Char('s') => {
                self.order = self.order.next();
                self.arrange(selected.as_ref());
            }
            KeyCode::Char('/') => self.input = Input::Line(Purpose::Filter, String::new()),
            KeyCode::Char('?' | 'h') => self.input = Input::Help(0),
            KeyCode::Char('l') => {
                self.input = Input::Line(Purpose::Limit(selected?.class), String::new());
            }
            KeyCode::Char('z') => return Some(Wish::Do(Action::Pause(self.target()?))),
            KeyCode::Char('K') => self.input = Input::End(self.target()?),
            _ => {}
        }
        None
    }

    /// Takes a line that was typed.
    fn take_line(&mut self, purpose: Purpose, line: String) -> Option<Wish> {
        match purpose {
            Purpose::Filter => {
                let selected = self.target();
                self.filter = line;
                self.follow(selected.as_ref());
            }
            Purpose::Limit(class) => match input::limit(&line) {
                Ok((resource, rate)) => {
                    return Some(Wish::Do(Action::Limit(Change { class, resource, rate })));
                }
                Err(why) => self.say(why),
            },
        }
        None
    }
}

/// Where a key moves to from a place in a list; `None` if it does not move.
fn moved(place: usize, last: usize, key: KeyCode) -> Option<usize> {
    Some(match key {
        KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => place.saturating_add(1).min(last),
        KeyCode::PageUp => place.saturating_sub(10),
        KeyCode::PageDown => place.saturating_add(10).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return None,
    })
}
