//! What keys do.

use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Moment, Rate};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{MIB, class, model, press, screen, snapshot};
use crate::top::action::{Action, Change, Target};
use crate::top::model::{Model, Wish};
use crate::top::snapshot::Snapshot;
use crate::top::style::Style;

fn typed(text: &str) -> Vec<KeyCode> {
    let letters = text.chars().map(KeyCode::Char);
    std::iter::once(KeyCode::Char('l')).chain(letters).chain([KeyCode::Enter]).collect()
}

/// The names of the classes, in the order in which they are shown.
fn shown(model: &mut Model) -> Vec<String> {
    press(model, &[KeyCode::Home]);
    let mut names: Vec<String> = Vec::new();
    for _ in 0..model.lines().len() {
        let name = model.target().unwrap().class;
        if names.last() != Some(&name) {
            names.push(name);
        }
        press(model, &[KeyCode::Down]);
    }
    names
}

#[test]
fn no_class_at_all() {
    let empty = || Snapshot { taken: Moment(1), classes: vec![] };
    let mut model = Model::new(empty(), Style::Unicode);
    model.update(empty());
    assert_eq!(press(&mut model, &[KeyCode::Char('l'), KeyCode::Down, KeyCode::End]), None);
    assert!(screen(&mut model, 80, 24).contains("Nothing is limited."));
}

#[test]
fn the_selection_stays_visible_and_on_its_class() {
    let crowd = |first: u32| Snapshot {
        taken: Moment(1),
        classes: (first..200)
            .map(|n| class(&format!("class-{n:03}"), Limits::UNLIMITED, vec![]))
            .collect(),
    };
    let mut model = Model::new(crowd(0), Style::Unicode);
    press(&mut model, &[KeyCode::End]);
    assert!(screen(&mut model, 80, 24).contains("class-199"));
    press(&mut model, &[KeyCode::PageUp]);
    model.update(crowd(100));
    assert_eq!(model.target().map(|one| one.class).as_deref(), Some("class-189"));
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

#[test]
fn classes_are_sorted_and_the_selection_stays_on_its_class() {
    let mut model = model(Style::Unicode);
    press(&mut model, &[KeyCode::End]);
    let selected = |model: &Model| model.target().map(|one| one.class);
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
fn a_limit_is_for_the_class_that_was_selected_when_it_was_asked_for() {
    let mut model = model(Style::Unicode);
    press(&mut model, &[KeyCode::Char('l'), KeyCode::Char('5'), KeyCode::Char('M')]);
    let mut next = snapshot(21);
    assert_eq!(next.classes.remove(0).name, "@updatedb-815", "it ends meanwhile");
    model.update(next);
    assert!(model.footer().starts_with("limit of @updatedb-815 "), "{}", model.footer());
    let (class, resource) = ("@updatedb-815".to_owned(), Resource::Total);
    let change = Change { class, resource, rate: Rate::per_second(5 * MIB) };
    assert_eq!(press(&mut model, &[KeyCode::Enter]), Some(Wish::Do(Action::Limit(change))));
}

#[test]
fn the_selection_stays_on_its_process() {
    let mut model = model(Style::Unicode);
    press(&mut model, &[KeyCode::End, KeyCode::Up]);
    let paused = |model: &mut Model| match press(model, &[KeyCode::Char('z')]) {
        Some(Wish::Do(Action::Pause(Target { class, process }))) => (class, process),
        other => panic!("{other:?}"),
    };
    assert_eq!(paused(&mut model), ("backup".into(), Some(4712)));
    let mut next = snapshot(21);
    assert_eq!(next.classes[1].processes.remove(0).id, 4711, "it ends");
    model.update(next);
    assert_eq!(paused(&mut model), ("backup".into(), Some(4712)));
    press(&mut model, &[KeyCode::Char('s')]);
    assert_eq!(paused(&mut model), ("backup".into(), Some(4712)), "sorted by rate");
    press(&mut model, &[KeyCode::Char('p')]);
    assert_eq!(paused(&mut model), ("backup".into(), None), "no process is shown");
}
