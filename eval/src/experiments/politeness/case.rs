//! The cells of the table, by name.

use anyhow::Context;

use super::background::Background;
use super::foreground::Foreground;
use crate::experiments::peer::Peer;
use crate::frame::experiment::Scale;

/// What is done about the background, and in a quick run.
pub const TREATMENTS: &[Peer] = &[
    Peer::Plain,
    Peer::Idle("mq-deadline"),
    Peer::Polite,
    Peer::Nice,
    Peer::Idle("bfq"),
    Peer::Cgroup(5),
    Peer::Discnice(5),
    Peer::Progress,
];
const QUICK_TREATMENTS: usize = 3;

/// One cell of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// What is waited for.
    pub foreground: Foreground,
    /// `None` for the foreground alone.
    pub beside: Option<(Background, Peer)>,
}

impl Case {
    /// Its name in records.
    pub fn name(self) -> String {
        let foreground = self.foreground.name();
        match self.beside {
            None => format!("{foreground} alone"),
            Some((background, peer)) => {
                format!("{foreground} beside {}, {}", background.name(), treatment(peer))
            }
        }
    }

    /// All cases: every foreground alone, then beside everything.
    pub fn all(scale: Scale) -> Vec<Self> {
        let foregrounds = scale.rounds(Foreground::ALL.len() as u32, Foreground::QUICK);
        let treatments = if scale.quick { &TREATMENTS[..QUICK_TREATMENTS] } else { TREATMENTS };
        let mut cases = Vec::new();
        for foreground in Foreground::ALL.into_iter().take(foregrounds as usize) {
            cases.push(Self { foreground, beside: None });
            for background in Background::ALL {
                let beside = |peer: &Peer| Self { foreground, beside: Some((background, *peer)) };
                cases.extend(treatments.iter().map(beside));
            }
        }
        cases
    }

    /// The case of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> anyhow::Result<Self> {
        let all = Self::all(Scale { quick: false, repetitions: None });
        let found = all.into_iter().find(|case| case.name() == name);
        found.with_context(|| format!("no case {name}"))
    }
}

/// The name of a treatment, whatever the background is.
pub fn treatment(peer: Peer) -> String {
    match peer {
        Peer::Plain => "nothing".into(),
        peer => peer.case(),
    }
}
