//! The command line of runc, as far as it matters here.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Options of runc without a value.
const FLAGS: &[&str] = &[
    "--debug",
    "--systemd-cgroup",
    "--no-pivot",
    "--no-new-keyring",
    "--no-subreaper",
    "--detach",
    "-d",
    "--keep",
    "--tty",
    "-t",
    "--force",
    "-f",
    "--no-new-privs",
    "--ignore-paused",
    "--help",
    "-h",
    "--version",
    "-v",
    "--all",
    "-a",
];

/// What runc is asked to do.
#[derive(Debug, Default)]
pub(super) struct Call<'a> {
    /// What stands before the verb.
    pub(super) before: &'a [OsString],
    pub(super) verb: &'a str,
    options: Vec<(&'a str, &'a OsStr)>,
    pub(super) container: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(super) fn of(words: &'a [OsString]) -> Self {
        let mut call = Self::default();
        let mut rest = words.iter().enumerate();
        while let Some((place, word)) = rest.next() {
            // What is no text is no option that matters here.
            let text = word.to_str().unwrap_or_default();
            if let Some((name, value)) = text.split_once('=').filter(|_| text.starts_with("--")) {
                call.options.push((name, OsStr::new(value)));
            } else if text.starts_with('-') && FLAGS.contains(&text) {
                call.options.push((text, OsStr::new("")));
            } else if text.len() > 1 && text.starts_with('-') {
                let Some((_, value)) = rest.next() else { break };
                call.options.push((text, value));
            } else if call.verb.is_empty() {
                (call.verb, call.before) = (text, &words[..place]);
            } else {
                call.container = Some(text);
                break;
            }
        }
        call
    }

    pub(super) fn option(&self, name: &str) -> Option<&'a OsStr> {
        self.options.iter().find(|(one, _)| *one == name).map(|(_, value)| *value)
    }

    pub(super) fn bundle(&self) -> PathBuf {
        let given = self.option("--bundle").or_else(|| self.option("-b"));
        PathBuf::from(given.unwrap_or(OsStr::new(".")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runc_is_asked_to_do() {
        for (line, verb, container, bundle) in [
            (
                "--root /r --log=/l create --bundle /b --pid-file /p one",
                "create",
                Some("one"),
                "/b",
            ),
            ("--systemd-cgroup run -d -b /b two", "run", Some("two"), "/b"),
            ("run --bundle=/b two", "run", Some("two"), "/b"),
            ("exec -t --user 1:1 -e A=b three sh -c -b", "exec", Some("three"), "."),
            ("delete -f four", "delete", Some("four"), "."),
            ("--version", "", None, "."),
            ("create", "create", None, "."),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let call = Call::of(&words);
            let found = (call.verb, call.container, call.bundle());
            assert_eq!(found, (verb, container, PathBuf::from(bundle)), "{line}");
        }
        let words = ["--root".into(), "/r".into(), "exec".into(), "a".into()];
        assert_eq!(Call::of(&words).before, &words[..2]);
    }
}
