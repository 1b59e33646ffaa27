//! A question on the desktop: a notification with actions, as the Desktop Notifications Specification has it.

use std::io;
use std::path::Path;
use std::time::Instant;

use super::wire::Argument;
use super::{BUS, Bus, BusMember, PATIENCE};

const NOTIFY: BusMember<'_> = BusMember {
    service: "org.freedesktop.Notifications",
    object: "/org/freedesktop/Notifications",
    interface: "org.freedesktop.Notifications",
    name: "Notify",
};
const CLOSE: BusMember<'_> = BusMember { name: "CloseNotification", ..NOTIFY };
const ADD_MATCH: BusMember<'_> = BusMember { name: "AddMatch", ..BUS };
const SIGNALS: &str = "type='signal',interface='org.freedesktop.Notifications'";
/// It is shown until it is answered.
const FOR_EVER: i32 = 0;

/// What may be answered.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// Its name, which the answer has.
    pub name: &'a str,
    /// What the user reads.
    pub label: &'a str,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The action of this name was chosen.
    Chosen(String),
    /// It was closed, and nothing chosen.
    Closed,
}

/// A question that is shown, until it is dropped.
#[derive(Debug)]
pub struct Question {
    bus: Bus,
    /// The call that asks.
    serial: u32,
    /// What the desktop calls the question, once it has said that.
    number: Option<u32>,
}

impl Question {
    /// Asks on the desktop behind this socket. A service that shows notifications may be started for that, which takes
    /// its time: it is not waited for.
    ///
    /// # Errors
    /// There is none.
    pub fn ask(socket: &Path, title: &str, text: &str, actions: &[Action<'_>]) -> io::Result<Self> {
        let until = Instant::now() + PATIENCE;
        let mut bus = Bus::connect(socket, until)?;
        bus.call(&ADD_MATCH, &[Argument::Text(SIGNALS)], false)?;
        let actions: Vec<&str> = actions.iter().flat_map(|one| [one.name, one.label]).collect();
        let arguments = [
            Argument::Text("DiscNice"),
            Argument::Number(0),
            Argument::Text("drive-harddisk"),
            Argument::Text(title),
            Argument::Text(text),
            Argument::Texts(&actions),
            Argument::Nothing,
            Argument::Signed(FOR_EVER),
        ];
        let serial = bus.call(&NOTIFY, &arguments, true)?;
        Ok(Self { bus, serial, number: None })
    }

    /// Returns the answer, if there is one by now.
    ///
    /// # Errors
    /// The bus is gone, or no service shows notifications.
    pub fn answer(&mut self) -> io::Result<Option<Answer>> {
        while let Some(message) = self.bus.message(Instant::now())? {
            if message.answers(self.serial) {
                self.number = Some(message.number().ok_or(io::ErrorKind::Unsupported)?);
            }
            if let Some((number, Some(name))) = message.signal("ActionInvoked")
                && Some(number) == self.number
            {
                return Ok(Some(Answer::Chosen(name.to_owned())));
            }
            let closed = message.signal("NotificationClosed");
            if closed.is_some_and(|(number, _)| Some(number) == self.number) {
                return Ok(Some(Answer::Closed));
            }
        }
        Ok(None)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        // One that was answered is closed already.
        let _ = self.answer();
        let closed = |number| self.bus.call(&CLOSE, &[Argument::Number(number)], false);
        let _ = self.number.map(closed);
    }
}
