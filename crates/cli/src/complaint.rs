//! What is wrong with a command line, in one line, and what to do about it.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Errors in a word of this length that are still taken for typing errors: one in so many letters.
const LETTERS: usize = 3;

/// Returns the option, subcommand or value that was probably meant. What clap suggests is dropped where it is nothing
/// like the word that was typed.
#[must_use]
pub fn suggestion(error: &clap::Error) -> Option<String> {
    use ContextKind::{SuggestedArg, SuggestedSubcommand, SuggestedValue};
    let found = [SuggestedArg, SuggestedSubcommand, SuggestedValue].into_iter();
    let similar = found.filter_map(|kind| error.get(kind)).find_map(|value| match value {
        ContextValue::String(one) => Some(one.clone()),
        // The most similar stands last.
        ContextValue::Strings(all) => all.last().cloned(),
        _ => None,
    })?;
    let typed =
        [ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue]
            .into_iter()
            .filter_map(|kind| text_of(error, kind))
            .any(|typed| is_typing_error(&typed, &similar));
    typed.then_some(similar)
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Whether a few letters were missed, doubled or swapped.
fn is_typing_error(typed: &str, meant: &str) -> bool {
    let [typed, meant] = [typed, meant].map(|word| word.trim_start_matches('-'));
    let typed = typed.split('=').next().unwrap_or(typed);
    let is_beginning = typed.len() > 1 && meant.starts_with(typed);
    is_beginning || strsim::osa_distance(typed, meant) * LETTERS <= typed.len().max(meant.len())
}

/// How like two names are that may be one with a typing error, as clap measures it for options.
const ALIKE: f64 = 0.7;

/// Returns the name most like the one that was typed, if any is.
pub fn meant<N: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = N>) -> Option<N> {
    let likeness = names.into_iter().map(|one| (strsim::jaro(typed, one.as_ref()), one));
    let alike = likeness.filter(|(alike, _)| *alike > ALIKE);
    alike.max_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, name)| name)
}

/// What other tools call the limits of ours, and ours. ionice(1), rsync(1), trickle(1), systemd.resource-control(5)
const OF_OTHERS: [(&str, &str); 8] = [
    ("--read", "--disk-read"),
    ("--write", "--disk-write"),
    ("--network", "--net"),
    ("--upload", "--net-up"),
    ("--download", "--net-down"),
    ("--bwlimit", "--disk or --net"),
    ("--rate", "--disk or --net"),
    ("--limit", "--disk or --net"),
];

/// The options that take a limit as an option of another tool does, if this subcommand has them.
fn of_others(error: &clap::Error) -> Option<&'static str> {
    const LIMITING: [&str; 3] = ["discnice run", "discnice attach", "discnice class set"];
    let typed = text_of(error, ContextKind::InvalidArg)?;
    let (_, ours) = OF_OTHERS.iter().find(|(theirs, _)| *theirs == typed)?;
    LIMITING.contains(&command(error).as_str()).then_some(ours)
}

/// A usage error as one line: what is wrong and what to do.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    // What follows an empty line is usage, tips and a pointer to --help.
    let message = text.split("\n\n").next().unwrap_or(&text);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let line = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let meant = suggestion(error).or_else(|| of_others(error).map(str::to_owned));
    match meant {
        Some(meant) => format!("{line}; did you mean {meant}?"),
        None => with_remedy(error, &line),
    }
}

/// Adds what to do.
fn with_remedy(error: &clap::Error, line: &str) -> String {
    use ErrorKind::{
        ArgumentConflict, DisplayHelpOnMissingArgumentOrSubcommand, InvalidValue,
        MissingRequiredArgument, MissingSubcommand, TooManyValues, ValueValidation,
    };
    let help = format!("see `{} --help`", command(error));
    match error.kind() {
        DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand => {
            format!("no subcommand given; {help}")
        }
        ArgumentConflict if line.ends_with("multiple times") => format!("{line}; give it once"),
        ArgumentConflict => format!("{line}; leave out one of them"),
        MissingRequiredArgument => {
            let missing = line.split_once(": ").map_or(line, |(_, missing)| missing);
            format!("missing: {missing}; usage: {}", usage(error))
        }
        InvalidValue if is_empty(error) => match option(error) {
            Some((name, value)) => format!("{name} needs a value; give it as {name} {value}"),
            None => format!("an argument is empty; give {}", operand(error)),
        },
        InvalidValue => format!("{line}; give one of them"),
        TooManyValues => format!("{line}; {help}"),
        // The parsers of values say what they take.
        ValueValidation => line.to_owned(),
        _ => format!("{line}; {help}"),
    }
}

/// Whether a value is missing, not wrong.
fn is_empty(error: &clap::Error) -> bool {
    text_of(error, ContextKind::InvalidValue).is_none_or(|value| value.is_empty())
}

/// What clap puts around the name of a value.
const BRACKETS: [char; 4] = ['<', '>', '[', ']'];

/// The option that the error is about, and its value's name.
fn option(error: &clap::Error) -> Option<(String, String)> {
    let text = text_of(error, ContextKind::InvalidArg)?;
    let (name, value) = text.split_once(' ')?;
    Some((name.to_owned(), value.trim_matches(BRACKETS).to_owned()))
}

/// What the argument that the error is about stands for, in words.
fn operand(error: &clap::Error) -> String {
    let name = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
    name.trim_end_matches('.').trim_matches(BRACKETS).replace('|', " or ")
}

/// The usage of the subcommand; empty if the error does not tell it.
fn usage(error: &clap::Error) -> String {
    const TITLE: &str = "Usage:";
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        // Where it is all of the help.
        _ => error.render().to_string(),
    };
    let text = usage.split_once(TITLE).map_or("", |(_, text)| text.trim_start());
    let text = text.split("\n\n").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The program and its subcommand, as far as the usage tells.
fn command(error: &clap::Error) -> String {
    let usage = usage(error);
    let is_name = |word: &&str| {
        let mut letters = word.chars();
        letters.all(|letter| letter.is_ascii_lowercase())
    };
    let words: Vec<&str> = usage.split_whitespace().take_while(is_name).collect();
    if words.is_empty() { "discnice".into() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_like_it_is_suggested() {
        for (typed, meant) in [
            ("--dsik", "--disk"),
            ("--netup", "--net-up"),
            ("--sumary=x", "--summary"),
            ("lst", "list"),
            ("detatch", "detach"),
            ("--net-loop", "--net-loopback"),
        ] {
            assert!(is_typing_error(typed, meant), "{typed}");
        }
        for (typed, other) in [
            ("--no-such-option", "--no-probation"),
            ("completions", "metrics"),
            ("ls", "top"),
            ("x", "run"),
        ] {
            assert!(!is_typing_error(typed, other), "{typed}");
        }
    }
}
