//! Screens that are drawn and keys that are pressed, without a terminal.

mod drawing;
mod keys;

use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Moment, Nanos, Rate};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Model, Wish};
use super::snapshot::{ClassSnapshot, ProcessSnapshot, Snapshot};
use super::style::Style;
use super::view::draw;
use crate::binding::Binding;

const MIB: u64 = 1 << 20;

fn process(id: u32, name: &str, read: u64) -> ProcessSnapshot {
    ProcessSnapshot { id, name: name.into(), read, written: 0, waited: Nanos(0), escape: None }
}

fn class(name: &str, limits: Limits, processes: Vec<ProcessSnapshot>) -> ClassSnapshot {
    let (rates, waited) = ([0; Resource::COUNT], Nanos(0));
    ClassSnapshot { name: name.into(), limits, rates, waited, binding: None, processes }
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
        taken: Moment((second + 1) * Nanos::SECOND.0),
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
