use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Nanos, Rate};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Change, Target};
use super::model::{HISTORY, Model, Wish};
use super::snapshot::{Class, Process, Snapshot};
use super::style::Style;
use super::view::draw;
use crate::binding::Binding;

const MIB: u64 = 1 << 20;

fn process(id: u32, name: &str, read: u64) -> Process {
    Process { id, name: name.into(), read, written: 0, waited: Nanos(0), escape: None }
}

fn class(name: &str, limits: Limits, processes: Vec<Process>) -> Class {
    let (rates, waited) = ([0; Resource::COUNT], Nanos(0));
    Class { name: name.into(), limits, rates, waited, binding: None, processes }
}

/// Three classes after `second` seconds: one at its limit, one without, one that escapes.
fn snapshot(second: u64) -> Snapshot {
    let disk = Limits::UNLIMITED.with(Resource::Total, Rate::per_second(5 * MIB));
    let mut tar = process(4711, "tar", second * 3 * MIB);
    tar.written = second * 2 * MIB;
    tar.waited = Nanos(second * 900_000_000);
    let mut backup = class("backup", disk, vec![tar, process(4712, "gzip", 0)]);
    backup.waited = Nanos(second * 1_250_000_000);
    backup.binding = Some(Binding::Others(0));
    let total = [1, 3, 5, 5, 4][second as usize % 5] * MIB;
    backup.rates[Resource::Total as usize] = total;
    backup.rates[Resource::Read as usize] = total / 5 * 3;
    backup.rates[Resource::Write as usize] = total / 5 * 2;
    let metadata = Limits::UNLIMITED
        .with(Resource::Metadata, Rate::per_second(1000))
        .with(Resource::NetUp, Rate::per_second(MIB));
    let mut indexer = process(815, "busybox", 0);
    indexer.escape = Some("/bin/busybox is statically linked".into());
    Snapshot {
        taken: Nanos((second + 1) * Nanos::SECOND.0),
        classes: vec![
            class("@updatedb-815", metadata, vec![indexer]),
            backup,
            class("idle", Limits::UNLIMITED, vec![]),
        ],
    }
}

fn model(style: Style) -> Model {
    let mut model = Model::new(snapshot(0), style);
    (1..=20).for_each(|second| model.update(snapshot(second)));
    model
}

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

fn terminal(model: &mut Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    terminal
}

fn screen(model: &mut Model, width: u16, height: u16) -> String {
    terminal(model, width, height).backend().to_string()
}

fn press(model: &mut Model, keys: &[KeyCode]) -> Option<Wish> {
    keys.iter().fold(None, |_, key| model.press(KeyEvent::new(*key, KeyModifiers::NONE)))
}

fn typed(text: &str) -> Vec<KeyCode> {
    let letters = text.chars().map(KeyCode::Char);
    std::iter::once(KeyCode::Char('l')).chain(letters).chain([KeyCode::Enter]).collect()
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
fn no_class_at_all() {
    let empty = || Snapshot { taken: Nanos(1), classes: vec![] };
    let mut model = Model::new(empty(), Style::Unicode);
    model.update(empty());
    assert_eq!(press(&mut model, &[KeyCode::Char('l'), KeyCode::Down, KeyCode::End]), None);
    assert!(screen(&mut model, 80, 24).contains("Nothing is limited."));
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
fn the_selection_stays_visible_and_on_its_class() {
    let crowd = |first: u32| Snapshot {
        taken: Nanos(1),
        classes: (first..200)
            .map(|n| class(&format!("class-{n:03}"), Limits::UNLIMITED, vec![]))
            .collect(),
    };
    let mut model = Model::new(crowd(0), Style::Unicode);
    press(&mut model, &[KeyCode::End]);
    assert!(screen(&mut model, 80, 24).contains("class-199"));
    press(&mut model, &[KeyCode::PageUp]);
    model.update(crowd(100));
    assert_eq!(model.selected_class().map(|class| class.name.as_str()), Some("class-189"));
    assert!(screen(&mut model, 80, 24).contains("class-189"));
}

#[test]
fn limits_are_typed() {
    let change = |resource, rate| {
        let class = "@updatedb-815".to_owned();
        Some(Wish::Do(Action::Limit(Change { class, resource, rate })))
    };
    let mut model = model(Style::Unicode);
    let five = Rate::per_second(5 * MIB);
    assert_eq!(press(&mut model, &typed("5M")), change(Resource::Total, five));
    assert_eq!(press(&mut model, &typed("up 5M")), change(Resource::NetUp, five));
    assert_eq!(
        press(&mut model, &typed("ops unlimited")),
        change(Resource::Operations, Rate::UNLIMITED)
    );
    for (wrong, why) in
        [("", "give a rate"), ("x 5M", "none of"), ("5Q", "unknown unit"), ("0", "at least 1")]
    {
        assert_eq!(press(&mut model, &typed(wrong)), None, "{wrong}");
        assert!(model.footer().contains(why), "{wrong}: {}", model.footer());
    }
    press(&mut model, &[KeyCode::Char('l'), KeyCode::Char('q')]);
    assert!(model.footer().ends_with("q_"), "q is typed, not obeyed");
    assert_eq!(press(&mut model, &[KeyCode::Esc]), None);
    assert_eq!(press(&mut model, &[KeyCode::Char('q')]), Some(Wish::Quit));
}

/// The names of the classes, in the order in which they are shown.
fn shown(model: &mut Model) -> Vec<String> {
    press(model, &[KeyCode::Home]);
    let mut names: Vec<String> = Vec::new();
    for _ in 0..model.lines().len() {
        let name = model.selected_class().unwrap().name.clone();
        if names.last() != Some(&name) {
            names.push(name);
        }
        press(model, &[KeyCode::Down]);
    }
    names
}

#[test]
fn classes_are_sorted_and_the_selection_stays_on_its_class() {
    let mut model = model(Style::Unicode);
    press(&mut model, &[KeyCode::End]);
    let selected = |model: &Model| model.selected_class().map(|class| class.name.clone());
    assert_eq!(selected(&model).as_deref(), Some("idle"));
    press(&mut model, &[KeyCode::Char('s')]);
    assert_eq!(selected(&model).as_deref(), Some("idle"));
    assert!(screen(&mut model, 80, 24).contains("by rate"));
    assert_eq!(shown(&mut model), ["backup", "@updatedb-815", "idle"]);
    model.update(snapshot(21));
    assert_eq!(shown(&mut model)[0], "backup", "also what comes later");
    press(&mut model, &[KeyCode::Char('s')]);
    assert_eq!(shown(&mut model)[0], "backup", "two and a half of its threads are held");
    press(&mut model, &[KeyCode::Char('s')]);
    assert_eq!(shown(&mut model), ["@updatedb-815", "backup", "idle"]);
}

#[test]
fn a_filter_shows_classes_by_their_names_and_those_of_their_processes() {
    let mut model = model(Style::Unicode);
    let filter = |model: &mut Model, text: &str| {
        let letters = text.chars().map(KeyCode::Char);
        let keys: Vec<_> = [KeyCode::Char('/')].into_iter().chain(letters).collect();
        press(model, &keys);
        let footer = model.footer();
        press(model, &[KeyCode::Enter]);
        footer
    };
    assert_eq!(filter(&mut model, "GZ"), "show names with: GZ_");
    assert_eq!(shown(&mut model), ["backup"]);
    filter(&mut model, "@up");
    assert_eq!(shown(&mut model), ["@updatedb-815"]);
    filter(&mut model, "none such");
    assert!(screen(&mut model, 80, 24).contains("No name has that in it."));
    assert_eq!(press(&mut model, &[KeyCode::Char('l'), KeyCode::Char('z')]), None);
    assert_eq!(press(&mut model, &[KeyCode::Esc]), None, "shows all again");
    assert_eq!(shown(&mut model).len(), 3);
    assert_eq!(press(&mut model, &[KeyCode::Esc]), Some(Wish::Quit));
}

#[test]
fn what_is_selected_is_paused_and_ended() {
    let mut model = model(Style::Unicode);
    let target = |process| Target { class: "backup".into(), process };
    press(&mut model, &[KeyCode::Down, KeyCode::Down]);
    let pause = press(&mut model, &[KeyCode::Char('z')]);
    assert_eq!(pause, Some(Wish::Do(Action::Pause(target(None)))));
    assert_eq!(press(&mut model, &[KeyCode::Char('K')]), None);
    assert_eq!(model.footer(), "end 2 processes of backup? y: yes, any other key: no");
    assert_eq!(press(&mut model, &[KeyCode::Char('q')]), None, "neither ends nor quits");
    assert_eq!(press(&mut model, &[KeyCode::Char('y')]), None, "it is not asked any more");
    press(&mut model, &[KeyCode::Down, KeyCode::Char('K')]);
    assert!(model.footer().starts_with("end process 4711 of backup?"));
    model.update(snapshot(21));
    let end = press(&mut model, &[KeyCode::Char('y')]);
    assert_eq!(end, Some(Wish::Do(Action::End(target(Some(4711))))));
}

#[test]
fn help_is_shown_until_a_key_is_pressed() {
    let mut model = model(Style::Ascii);
    press(&mut model, &[KeyCode::Char('?')]);
    let shown = screen(&mut model, 60, 20);
    assert!(shown.contains("pause the class or process") && shown.contains("discnice resume"));
    assert!(!shown.contains("backup"));
    press(&mut model, &[KeyCode::Char('q')]);
    assert!(screen(&mut model, 80, 24).contains("backup"), "any key goes back");
}

#[test]
fn control_keys_end_and_stop() {
    let mut model = model(Style::Unicode);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    assert_eq!(model.press(control('c')), Some(Wish::Quit));
    assert_eq!(model.press(control('z')), Some(Wish::Suspend));
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
    let drawn = super::picture::svg(terminal(&mut model, 80, 14).backend().buffer());
    if std::env::var_os("DISCNICE_UPDATE").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), drawn);
}

#[test]
fn names_that_a_terminal_would_obey_are_shown() {
    let hostile = "\u{1b}[2J\u{9b}\r\nforged\u{202e}\u{200b}";
    let crowd = || Snapshot {
        taken: Nanos(1),
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
