//! What is being typed or asked, and what keys mean meanwhile.

use discnice_ledger::policy::Resource;
use discnice_units::Rate;
use ratatui::crossterm::event::KeyCode;

use super::action::Target;

/// No rate and no filter needs more characters.
const LONGEST: usize = 24;

/// What the keys do at present.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Input {
    /// Each key does what the help says.
    #[default]
    List,
    /// Keys add to a line, for this purpose.
    Line(Purpose, String),
    /// `y` ends the target; every other key does not.
    End(Target),
    /// Keys that move the selection scroll the help, of which this is the first line that is shown; any other closes it.
    Help(usize),
}

/// The purpose of a line that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A limit of the class of this name, which stays this one whatever is selected meanwhile.
    Limit(String),
    /// A part of a name.
    Filter,
}

/// What became of a line that is typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// More keys belong to the line.
    More,
    /// The user has given it up.
    Given,
    /// The line is complete.
    Done,
}

/// Edits a line by a key.
pub fn edit(line: &mut String, key: KeyCode) -> Typed {
    match key {
        KeyCode::Esc => return Typed::Given,
        KeyCode::Enter => return Typed::Done,
        KeyCode::Backspace => {
            line.pop();
        }
        KeyCode::Char(letter @ ' '..='~') if line.len() < LONGEST => line.push(letter),
        _ => {}
    }
    Typed::More
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

/// Reads a limit: `5M`, `r 5M`, `ops 100`.
///
/// # Errors
/// Says what is wrong with the line.
pub fn limit(typed: &str) -> Result<(Resource, Rate), String> {
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
