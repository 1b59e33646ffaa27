//! What is drawn.

use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Moment, Nanos, Rate};
use ratatui::crossterm::event::KeyCode;

use super::{MIB, class, model, press, process, screen, snapshot, terminal};
use crate::binding::Binding;
use crate::top::model::{HISTORY, Model};
use crate::top::picture;
use crate::top::snapshot::Snapshot;
use crate::top::style::Style;
use crate::top::view::HELP;

/// A job that gives way now and then is hardly ever looked at just as it waits.
#[test]
fn what_was_waited_for_is_shown_as_long_as_the_class_slept() {
    let mut model = model(Style::Ascii);
    let mut next = |second| {
        let mut next = snapshot(second);
        next.classes[1].binding = None;
        if second > 21 {
            next.classes[1].waited = Nanos(21 * 1_250_000_000);
        }
        model.update(next);
        screen(&mut model, 80, 12).contains("give")
    };
    assert!(next(21), "it slept since the look before");
    assert!(!next(22), "it did not");
}

#[test]
fn an_ordinary_terminal() {
    insta::assert_snapshot!(screen(&mut model(Style::Unicode), 80, 24));
}

#[test]
fn a_wide_terminal_without_unicode() {
    let shown = screen(&mut model(Style::Ascii), 120, 10);
    assert!(shown.is_ascii());
    insta::assert_snapshot!(shown);
}

#[test]
fn every_size_of_terminal_is_survived() {
    // What no terminal has is drawn as well; the backend of tests cannot print it.
    let _ = terminal(&mut model(Style::Unicode), 0, 0);
    for (width, height) in [(1, 1), (59, 24), (80, 5), (60, 6), (500, 200)] {
        let shown = screen(&mut model(Style::Unicode), width, height);
        if (20..60).contains(&width) || width >= 60 && height < 6 {
            assert!(shown.contains("needs 60 columns"), "{width}x{height}: {shown}");
        }
    }
}

#[test]
fn history_is_bounded() {
    let mut model = model(Style::Unicode);
    (21..500).for_each(|second| model.update(snapshot(second)));
    let backup = model.now().classes[1].clone();
    assert_eq!(model.history(&backup).count(), HISTORY);
    assert_eq!(model.history(&backup).next_back(), Some(4 * MIB));
}

#[test]
fn control_characters_of_foreign_names_reach_no_terminal() {
    let mut snapshot = snapshot(0);
    snapshot.classes[1].processes[0].name = "\u{1b}]0;evil\u{7}".into();
    let mut model = Model::new(snapshot, Style::Unicode);
    assert!(!screen(&mut model, 120, 24).contains(['\u{1b}', '\u{7}']));
}

/// The picture in the documentation is what is drawn now; `DISCNICE_UPDATE=1` makes it anew.
#[test]
fn the_documentation_shows_what_is_drawn() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/img/top.svg");
    let mut model = model(Style::Unicode);
    let drawn = picture::svg(terminal(&mut model, 80, 14).backend().buffer());
    if std::env::var_os("DISCNICE_UPDATE").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), drawn);
}

#[test]
fn names_that_a_terminal_would_obey_are_shown() {
    let hostile = "\u{1b}[2J\u{9b}\r\nforged\u{202e}\u{200b}";
    let crowd = || Snapshot {
        taken: Moment(1),
        classes: vec![class(hostile, Limits::UNLIMITED, vec![process(1, hostile, 0)])],
    };
    let mut model = Model::new(crowd(), Style::Unicode);
    let list = screen(&mut model, 200, 10);
    press(&mut model, &[KeyCode::Char('l')]);
    let asked = screen(&mut model, 200, 10);
    press(&mut model, &[KeyCode::Esc]);
    model.say(format!("class {hostile} is gone"));
    let told = screen(&mut model, 200, 10);
    for shown in [list, asked, told] {
        assert!(shown.contains(r"\u{1b}[2J\u{9b}\r\nforged\u{202e}"), "{shown}");
        let obeyed = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!shown.contains(obeyed), "{shown:?}");
    }
}

#[test]
fn what_is_typed_and_told_is_seen_on_a_narrow_terminal() {
    let crowd = || Snapshot {
        taken: Moment(1),
        classes: vec![class(&"n".repeat(64), Limits::UNLIMITED, vec![])],
    };
    let mut model = Model::new(crowd(), Style::Unicode);
    press(&mut model, &[KeyCode::Char('l'), KeyCode::Char('5'), KeyCode::Char('M')]);
    let shown = screen(&mut model, 60, 6);
    assert!(shown.contains("limit of nnn") && shown.contains("RATE): 5M_"), "{shown}");
    press(&mut model, &[KeyCode::Esc]);
    model.say("\u{e4}\u{540d} ".repeat(40) + "the end");
    let shown = screen(&mut model, 60, 8);
    assert!(shown.contains("nnn") && shown.contains("the end"), "{shown}");
    model.say("x".repeat(5000));
    assert!(screen(&mut model, 60, 6).contains("nnn"), "the list is never covered");
}

#[test]
fn limits_are_not_cut_off() {
    let disk = |rate: &str| {
        let limits = Limits::UNLIMITED.with(Resource::Total, rate.parse().unwrap());
        let limits = limits.with(Resource::NetUp, Rate::per_second(MIB));
        let classes = vec![class("backup", limits, vec![])];
        screen(&mut Model::new(Snapshot { taken: Moment(1), classes }, Style::Ascii), 60, 6)
    };
    assert!(disk("12.5M").contains(" 12.5 MiB/s+ "), "{}", disk("12.5M"));
    assert!(disk("1023M").contains(" 1023 MiB/s+ "), "{}", disk("1023M"));
}

#[test]
fn help_scrolls_on_a_low_terminal() {
    let mut model = model(Style::Ascii);
    press(&mut model, &[KeyCode::Char('?')]);
    let mut seen = screen(&mut model, 60, 6);
    for _ in 0..30 {
        press(&mut model, &[KeyCode::Down]);
        seen += &screen(&mut model, 60, 6);
    }
    for line in HELP.lines() {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    press(&mut model, &[KeyCode::Up]);
    assert!(!screen(&mut model, 60, 6).contains("(used)"), "one line up");
    press(&mut model, &[KeyCode::Char('x')]);
    assert!(screen(&mut model, 60, 6).contains("ALLOWED"));
}

#[test]
fn help_explains_each_mark() {
    let mut model = model(Style::Ascii);
    press(&mut model, &[KeyCode::Char('?')]);
    let shown = screen(&mut model, 60, 20);
    let limits = (0..Resource::COUNT as u8).map(Binding::Limit);
    let others = [
        Binding::Paused,
        Binding::Unmet(1),
        Binding::UsedUp,
        Binding::Memory,
        Binding::Least,
        Binding::Uplink,
        Binding::Others(0),
    ];
    for one in limits.chain(others) {
        let mark = one.mark();
        let is_in = shown.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word == mark);
        assert!(is_in, "{mark}: {shown}");
    }
}
