//! `discnice top`: a live view on a terminal.
//!
//! - [`snapshot`]: what all classes show at one moment;
//! - [`model`]: what is shown and selected, and how keys change it;
//! - [`style`]: the characters that the terminal has;
//! - [`input`]: what is being typed or asked;
//! - [`action`]: what keys do to classes and processes;
//! - [`view`]: how it is drawn;
//! - [`screen`]: the terminal, which is given back whatever happens;
//! - [`typing`]: what is typed there, as it comes;
//! - [`signals`]: what wants the view to end or to stop.

mod action;
mod input;
mod model;
#[cfg(test)]
mod picture;
mod screen;
mod signals;
mod snapshot;
mod style;
#[cfg(test)]
mod tests;
mod typing;
mod view;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use model::{Model, Wish};
use screen::Screen;
use signal_hook::consts::SIGHUP;
use signals::Signals;
use snapshot::Snapshot;
use typing::Keyboard;

use crate::launch::Ended;

/// A signal is noticed after so long at most.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shows all classes, looking every `interval`, until the user or a signal ends it.
///
/// # Errors
/// The terminal cannot be used, or the classes cannot be listed.
pub fn run(interval: Duration) -> anyhow::Result<ExitCode> {
    let signals = Signals::watch()?;
    let mut model = Model::new(Snapshot::take()?, style::Style::of_locale());
    let (mut screen, mut keyboard) = (Screen::open()?, Keyboard::new());
    let mut next = Instant::now() + interval;
    loop {
        screen.draw(|frame| view::draw(frame, &mut model))?;
        if let Some(signal) = signals.end() {
            drop(screen);
            return Ok(Ended::Killed(signal).repeat());
        }
        if signals.stop() {
            screen.suspend()?;
        }
        let wait = next.saturating_duration_since(Instant::now()).min(PATIENCE);
        let Some(keys) = keyboard.wait(wait) else {
            return Ok(Ended::Killed(SIGHUP).repeat());
        };
        for key in keys {
            match model.press(key) {
                Some(Wish::Quit) => return Ok(ExitCode::SUCCESS),
                Some(Wish::Suspend) => screen.suspend()?,
                Some(Wish::Do(action)) => model.say(action.apply()),
                None => {}
            }
        }
        if Instant::now() >= next {
            if !model.is_frozen() {
                model.update(Snapshot::take()?);
            }
            next = Instant::now() + interval;
        }
    }
}
