//! Why a node has no lease.

use std::fmt;

use discnice_escape::visible;
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::settings::{Contradiction, VERSION};

/// Characters of a foreign message that are shown.
const SHOWN: usize = 160;

/// Why a server grants nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The address in the configuration is none.
    Address(String),
    /// A file that the address names: the password, or the authority's certificate.
    File(String),
    /// No connection, or no answer in time.
    Unreachable(String),
    /// The server and this machine do not agree on encryption, or it is not the server it says it is.
    Tls(String),
    /// The server wants a user name and a password.
    NoPassword,
    /// Wrong user name or password.
    Password,
    /// The user may not do this; what the server says of it.
    Permission(String),
    /// The server knows no class of this name.
    NoClass,
    /// The class's keys are of another version of DiscNice.
    OtherVersion(u32),
    /// What lies in the class's keys, or what the server answers, is another program's.
    NotOurs,
    /// There are as many nodes already as were set.
    Full(u64),
    /// The server is a copy that takes no changes.
    Replica,
    /// The settings of the class contradict each other.
    Settings(Contradiction),
    /// Any other error of the server.
    Server(String),
}

/// Numbers of reports in a class's memory: 0 to 3 are no faults.
pub mod report {
    /// Nothing is known yet.
    pub const NOTHING: u32 = 0;
    /// The class has a lease.
    pub const LEASED: u32 = 1;
    /// The server was restarted, and only renews what nodes report to have.
    pub const LEARNING: u32 = 2;
    /// Nothing runs in the class, so it gave its lease back.
    pub const IDLE: u32 = 3;
}

/// Texts of reports, for what was noted by another process; each begins where "the class" would stand.
const REPORTS: [(u32, &str); 12] = [
    (report::NOTHING, "has not reached its server yet"),
    (
        report::LEARNING,
        "has a server that was started lately, and learns first what its nodes have",
    ),
    (10, "has a wrong address in config.toml"),
    (11, "needs a file that cannot be read"),
    (12, "cannot reach its server"),
    (13, "cannot agree with its server on TLS"),
    (14, "was not let in by its server: user name or password"),
    (15, "has a user without the permissions that it needs on the server"),
    (16, "is not known to its server"),
    (17, "found keys that are not this version's on its server"),
    (18, "is refused, as there are as many nodes as were set"),
    (19, "was answered with an error"),
];

/// What a report in a class's memory means; `None` if nothing is wrong.
#[must_use]
pub fn told(number: u32) -> Option<&'static str> {
    if [report::LEASED, report::IDLE].contains(&number) {
        return None;
    }
    let known = REPORTS.iter().find(|(one, _)| *one == number);
    Some(known.map_or("has a report that this version does not know", |(_, text)| text))
}

impl Fault {
    /// The number that stands for it in a class's memory ([`told`]).
    #[must_use]
    pub const fn number(&self) -> u32 {
        match self {
            Self::Address(_) => 10,
            Self::File(_) => 11,
            Self::Unreachable(_) => 12,
            Self::Tls(_) => 13,
            Self::NoPassword | Self::Password => 14,
            Self::Permission(_) => 15,
            Self::NoClass => 16,
            Self::OtherVersion(_) | Self::NotOurs => 17,
            Self::Full(_) => 18,
            Self::Replica | Self::Settings(_) | Self::Server(_) => 19,
        }
    }

    /// What an error of the client library means.
    #[must_use]
    pub fn of(error: &RedisError) -> Self {
        let said = shown(&error.to_string());
        match (error.kind(), error.code()) {
            (_, Some("WRONGPASS")) | (ErrorKind::AuthenticationFailed, _) => Self::Password,
            (_, Some("NOAUTH")) => Self::NoPassword,
            (_, Some("NOPERM")) | (ErrorKind::Server(ServerErrorKind::NoPerm), _) => {
                Self::Permission(said)
            }
            (_, Some("WRONGTYPE")) => Self::NotOurs,
            (_, Some("READONLY")) | (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => {
                Self::Replica
            }
            // Errors inside the script come with the script's.
            _ if said.contains("NOPERM") || said.contains("user executing the script") => {
                Self::Permission(said)
            }
            _ if said.contains("WRONGTYPE") => Self::NotOurs,
            // A server that hangs, or that waits for something else than what it is sent.
            _ if error.is_timeout() || said.contains("reset by peer") => {
                Self::Unreachable(format!("{said}; is it rediss:// (with TLS) on both sides?"))
            }
            _ if is_tls(&said) => Self::Tls(said),
            (ErrorKind::Parse, _) => {
                Self::Unreachable("it does not answer like a Redis server".into())
            }
            (ErrorKind::Io, _) => Self::Unreachable(said),
            _ => Self::Server(said),
        }
    }
}

/// Whether an error of input or output is one of TLS: the library does not tell them apart.
fn is_tls(said: &str) -> bool {
    [
        "certificate",
        "TLS",
        "InvalidMessage",
        "corrupt message",
        "AlertReceived",
        "fatal alert",
        "close_notify",
    ]
    .iter()
    .any(|word| said.contains(word))
}

/// A message of unknown origin in one line of bounded length.
pub(crate) fn shown(message: &str) -> String {
    let short: String = message.chars().take(SHOWN).collect();
    visible(&short.replace(['\n', '\r'], " ")).into_owned()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(f, "no address of a fleet: {why}; give redis[s]://[USER@]HOST[:PORT]/CLASS"),
            Self::File(why) => f.write_str(why),
            Self::Unreachable(why) => write!(f, "no answer: {why}"),
            Self::Tls(why) => write!(
                f,
                "no agreement on TLS: {why}; is it rediss:// (with TLS) on both sides, and HOST the name in its certificate?"
            ),
            Self::NoPassword => {
                f.write_str("it wants a user and a password; give them as rediss://USER@HOST/CLASS?password-file=PATH")
            }
            Self::Password => f.write_str("wrong user name or password"),
            Self::Permission(said) => {
                write!(f, "the user may not do that ({said}); docs/fleet.md lists the permissions")
            }
            Self::NoClass => f.write_str("it has no such class; make it by `discnice fleet set`"),
            Self::OtherVersion(version) => {
                write!(f, "its class is of version {version}, and this program's is {VERSION}; set it again or use that program")
            }
            Self::NotOurs => {
                f.write_str("its keys of this class hold another program's data; use another class name, or remove them")
            }
            Self::Full(nodes) => {
                write!(f, "it has {nodes} nodes, as many as were set; `discnice fleet set --nodes N` admits more")
            }
            Self::Replica => f.write_str("it is a replica, which takes no changes; give the address of the primary"),
            Self::Settings(why) => why.fmt(f),
            Self::Server(said) => write!(f, "it answers: {said}"),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_text() {
        let faults = [
            Fault::Address(String::new()),
            Fault::File(String::new()),
            Fault::Unreachable(String::new()),
            Fault::Tls(String::new()),
            Fault::NoPassword,
            Fault::Password,
            Fault::Permission(String::new()),
            Fault::NoClass,
            Fault::OtherVersion(2),
            Fault::NotOurs,
            Fault::Full(3),
            Fault::Replica,
            Fault::Settings(Contradiction::NoCap),
            Fault::Server(String::new()),
        ];
        for fault in faults {
            assert!(REPORTS.iter().any(|(number, _)| *number == fault.number()), "{fault:?}");
            assert!(!fault.to_string().contains('\n'), "{fault}");
        }
        assert!(told(report::LEASED).is_none() && told(report::LEARNING).is_some());
        assert!(told(u32::MAX).is_some_and(|text| text.contains("not know")));
    }

    #[test]
    fn what_a_server_says_is_one_harmless_line() {
        let said = shown(&format!("a\nb\u{1b}[2J{}", "x".repeat(10_000)));
        assert!(!said.contains(['\n', '\u{1b}']) && said.len() < 4 * SHOWN, "{said}");
    }
}
