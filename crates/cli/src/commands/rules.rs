//! `discnice rules`: which class processes enter that no command of ours started.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::{Args as ClapArgs, Subcommand};
use discnice_escape::Foreign;
use discnice_watcher::daemon::rules::subject::{Key, Subject};
use discnice_watcher::daemon::rules::{Outcome, Rule, first};
use discnice_watcher::process::{Refusal, pin};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::config::rules;
use crate::executed::Executed;
use crate::output::{self, Lines};
use crate::{classes, program, ruled};

const EXAMPLES: &str = "\
Examples:
  discnice rules                     the rules in their order, and whether they are followed
  discnice rules test 4711           which one matches process 4711, and why the others do not
  discnice rules test baloo_file     the same for a command

  # ~/.config/discnice/config.toml
  include = [\"indexers\"]             also thumbnailers, updaters, sync, compilers
  [[rule]]
  match = { exe = \"kf6/baloo_file*\" }
  class = \"indexers\"";

/// The kernel keeps so many bytes of a name.
const NAME: usize = 15;
/// What to do where nothing follows them.
const START: &str =
    "start it: `systemctl --user enable --now discnice-policyd.service`, or `discnice policyd &`";

/// List the rules by which running programs enter classes, or test one
///
/// The rules are in config.toml. Four times a second, policyd compares the processes of this user with them, and limits those
/// that match, as `discnice attach` does.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show which rule matches a process or command, and why the others do not; exit status 1 if none does
    Test {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// A running process, or a command with its arguments
        #[arg(
            value_name = "PID|COMMAND",
            required = true,
            trailing_var_arg = true,
            allow_negative_numbers = true
        )]
        subject: Vec<OsString>,
    },
}

impl Args {
    /// Prints what is asked for.
    ///
    /// # Errors
    /// The rules cannot be read, or there is nothing to test.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let loaded = rules::load().0.rules.map_err(|why| anyhow!(why))?;
        match self.action {
            None => list(&loaded, self.json).map(|()| ExitCode::SUCCESS),
            Some(Action::Test { json, subject }) => test(&loaded, &subject, json),
        }
    }
}

fn list(rules: &[Rule], json: bool) -> anyhow::Result<()> {
    let followed = ruled::followed();
    if json {
        let all: Vec<Value> = rules.iter().map(as_json).collect();
        let text = serde_json::to_string_pretty(&json!({ "rules": all, "followed": followed }))?;
        return Ok(output::json(&text)?);
    }
    let mut lines = Lines::default();
    let width = rules.iter().map(|rule| class(rule).width()).max().unwrap_or_default().min(24);
    for rule in rules {
        let class = Foreign::text(class(rule));
        lines.push(format_args!("{class:width$}  {}  ({})", rule.conditions, rule.place));
    }
    match followed {
        _ if rules.is_empty() => {
            lines.push(format_args!("no rules; `discnice rules --help` shows what they look like"));
        }
        Some(count) if count == rules.len() => lines.push(format_args!("policyd follows them")),
        Some(count) => lines.push(format_args!(
            "policyd follows {count} rules, as they were before; it looks every 2 s whether they have changed"
        )),
        None => lines.push(format_args!("not followed, as policyd does not run; {START}")),
    }
    Ok(lines.say()?)
}

/// What happens by a rule, in a word or two.
fn class(rule: &Rule) -> &str {
    match &rule.outcome {
        Outcome::Enter(class, _) => class,
        Outcome::LeaveAlone => "(left alone)",
    }
}

fn as_json(rule: &Rule) -> Value {
    let class = match &rule.outcome {
        Outcome::Enter(class, _) => Some(class),
        Outcome::LeaveAlone => None,
    };
    json!({ "place": rule.place, "class": class, "match": rule.conditions.to_string() })
}

/// What is tested.
struct Tested {
    subject: Subject,
    /// Its number, if it runs.
    id: Option<u32>,
    /// Why no rule puts it into a class now.
    unfit: Option<String>,
}

fn test(rules: &[Rule], words: &[OsString], json: bool) -> anyhow::Result<ExitCode> {
    let number = words.first().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let tested = match number {
        Some(id) if words.len() == 1 => running(id)?,
        _ => command(words)?,
    };
    let decides = first(rules, &tested.subject);
    if json {
        output::json(&serde_json::to_string_pretty(&told(rules, &tested, decides))?)?;
    } else {
        show(rules, &tested, decides)?;
    }
    Ok(ExitCode::from(u8::from(decides.is_none())))
}

fn running(id: i32) -> anyhow::Result<Tested> {
    let pinned = pin(id)?;
    let Some(subject) = Subject::read(pinned.id(), Key::ALL.into_iter()) else {
        bail!(Refusal::Foreign(id));
    };
    let unfit = ruled::fitness(&pinned, &classes::all()?).err().map(|why| why.to_string());
    Ok(Tested { subject, id: Some(pinned.id()), unfit })
}

/// A command as it would be, started from here.
fn command(words: &[OsString]) -> anyhow::Result<Tested> {
    let name = words.first().cloned().unwrap_or_default();
    if name.is_empty() {
        bail!("nothing to test: the command is empty; give a PID or a command");
    }
    let Some(path) = program::find(&name) else {
        bail!("no process and no program {}; give a PID or a command", Foreign::word(&name));
    };
    if let Some(fault) = program::fault(&path) {
        bail!("cannot look at {}: {fault}", Foreign::path(&path));
    }
    let Executed { exe, name, arguments } = Executed::of(path, words);
    let name = name.to_string_lossy();
    let kept = &name[..name.floor_char_boundary(NAME)];
    let own = Subject::read(std::process::id(), Key::ALL.into_iter()).unwrap_or_default();
    let group = own.value(Key::Cgroup).unwrap_or_default();
    let line: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let subject = Subject::new(&exe.to_string_lossy(), kept, group, &line.join(" "));
    Ok(Tested { subject, id: None, unfit: None })
}

fn show(rules: &[Rule], tested: &Tested, decides: Option<&Rule>) -> anyhow::Result<()> {
    let mut lines = Lines::default();
    for key in Key::ALL {
        let value = tested.subject.value(key).unwrap_or("(unknown)");
        let note = if tested.id.is_none() && key == Key::Cgroup { " (of this shell)" } else { "" };
        lines.push(format_args!("{:8} {value}{note}", key.name()));
    }
    for rule in rules {
        let missed = rule.conditions.each(&tested.subject).find(|(.., holds)| !holds);
        let why = match missed {
            Some((key, patterns, _)) => format!("no: its {key} is not {patterns}"),
            None if decides.is_some_and(|one| std::ptr::eq(one, rule)) => "yes".into(),
            None => "yes, but an earlier one decides".into(),
        };
        lines.push(format_args!("{} -> {}: {why}", rule.place, class(rule)));
    }
    lines.push(format_args!("{}", verdict(tested, decides)));
    Ok(lines.say()?)
}

fn verdict(tested: &Tested, decides: Option<&Rule>) -> String {
    let Some(rule) = decides else { return "no rule matches".into() };
    match (&rule.outcome, &tested.unfit) {
        (Outcome::LeaveAlone, _) => format!("left alone, by {}", rule.place),
        (Outcome::Enter(class, _), None) => format!("class {class}, by {}", rule.place),
        (Outcome::Enter(class, _), Some(why)) => {
            format!("class {class}, by {}, but not now: {why}", rule.place)
        }
    }
}

fn told(rules: &[Rule], tested: &Tested, decides: Option<&Rule>) -> Value {
    let subject: serde_json::Map<String, Value> = Key::ALL
        .into_iter()
        .map(|key| (key.name().to_owned(), json!(tested.subject.value(key))))
        .collect();
    let each = |rule: &Rule| {
        let conditions = rule.conditions.each(&tested.subject);
        let conditions: Vec<Value> = conditions
            .map(|(key, patterns, holds)| {
                json!({ "key": key.name(), "patterns": patterns.to_string(), "holds": holds })
            })
            .collect();
        let mut told = as_json(rule);
        told["matches"] = json!(rule.conditions.hold(&tested.subject));
        told["conditions"] = json!(conditions);
        told
    };
    let all: Vec<Value> = rules.iter().map(each).collect();
    json!({
        "pid": tested.id,
        "subject": subject,
        "rules": all,
        "decides": decides.map(as_json),
        "not_now": tested.unfit,
    })
}
