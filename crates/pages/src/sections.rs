//! Sections of manual pages that no definition of an option has.

/// A title, and paragraphs; one that begins with two words of `**` is a term with its text.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    title: &'static str,
    text: &'static [Item],
}

/// A part of a section.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    /// A paragraph.
    Text(&'static str),
    /// A term and what it means.
    Term(&'static str, &'static str),
    /// Lines that stay as they are.
    Lines(&'static str),
}

use Item::{Lines, Term, Text};

impl Section {
    /// Where to read on.
    pub const SEE_ALSO: Self = Self {
        title: "SEE ALSO",
        text: &[Text(
            "discnice(1), discnice-config(5), discnice-run(1), discnice-status(1), discnice-explain(1), nice(1), ionice(1), \
             systemd.resource-control(5)",
        )],
    };

    /// The section as troff.
    pub fn roff(&self) -> String {
        let title = if self.title.contains(' ') {
            format!("\"{}\"", self.title)
        } else {
            self.title.into()
        };
        let items = self.text.iter().map(|item| match item {
            Text(text) => format!(".PP\n{}\n", escaped(text)),
            Term(term, text) => format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(text)),
            Lines(text) => format!(".PP\n.nf\n{}\n.fi\n", escaped(text)),
        });
        format!(".SH {title}\n{}", items.collect::<String>())
    }
}

/// Text that troff takes for nothing else.
pub fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let guarded =
        |line: &str| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() };
    text.lines().map(guarded).collect::<Vec<_>>().join("\n")
}

const OWN: Item = Term(
    "125",
    "DiscNice itself failed; one line on standard error says why. Nothing was changed.",
);
const FINE: Item = Term("0", "Success.");

const RUN_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        Term(
            "the command's",
            "The exit status of the command. If a signal ended it, discnice ends by the same signal.",
        ),
        OWN,
        Term("126", "The command cannot be executed."),
        Term("127", "There is no such command."),
    ],
};
const ADMIT_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        Term("the command's", "The exit status of the command."),
        Term("124", "The memory did not become free within --timeout."),
        OWN,
        Term("126", "The command cannot be executed."),
        Term("127", "There is no such command."),
    ],
};
const PARTS_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        FINE,
        Term(
            "1",
            "A part of what was asked for failed, or a check found a problem; one line says which.",
        ),
        OWN,
    ],
};
const LINGER_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        Term("0", "The job had better move."),
        Term("1", "It had better stay, or has ended."),
        OWN,
    ],
};
const STATUS: Section = Section { title: "EXIT STATUS", text: &[FINE, OWN] };

const FILES: Section = Section {
    title: "FILES",
    text: &[
        Term(
            "$XDG_CONFIG_HOME/discnice/config.toml (~/.config/discnice/config.toml)",
            "Limits of new classes and other settings, see discnice-config(5).",
        ),
        Term("/etc/discnice/config.toml", "The settings of the site."),
        Term(
            "$XDG_RUNTIME_DIR/discnice/",
            "Names of classes, the socket of the daemon and copies of the library. If the variable is not set, a private directory below /tmp is used.",
        ),
        Term(
            "$XDG_CACHE_HOME/discnice/profile.toml (~/.cache/discnice/profile.toml)",
            "The host profile: what discnice-calibrate(1) measured.",
        ),
        Term(
            "$XDG_STATE_HOME/discnice/targets/ (~/.local/state/discnice/targets/)",
            "What --polite has learned about jobs.",
        ),
    ],
};

const ENVIRONMENT: Section = Section {
    title: "ENVIRONMENT",
    text: &[
        Term(
            "DISCNICE_STRICT",
            "1 has the effect of --strict, and 0 turns it off, whatever config.toml says.",
        ),
        Term(
            "XDG_CONFIG_HOME, XDG_RUNTIME_DIR, XDG_CACHE_HOME, XDG_STATE_HOME, HOME",
            "Where the files above are. Directories that belong to other users are not used.",
        ),
        Term("NO_COLOR", "If set, help has no colours."),
        Term(
            "LD_PRELOAD, DISCNICE",
            "Set for commands that the library holds, and removed before the command reads its environment.",
        ),
    ],
};

const QUANTITIES: Section = Section {
    title: "QUANTITIES",
    text: &[
        Text(
            "A size or rate is a number with a unit, in upper or lower case: B, K, M, G and T (or KiB and so on) are powers of 1024; KB, MB, GB and TB are powers of 1000. A rate may end in /s. A rate below 4096 needs a unit, because 5 usually means 5M. A disk rate may be a percentage of what discnice-calibrate(1) measured, such as 10%. The word unlimited removes a limit.",
        ),
        Text("Durations are written as in systemd.time(7): 90 (seconds), 5min, 1h30min."),
    ],
};

const ABOUT: Section = Section {
    title: "HOW COMMANDS ARE HELD",
    text: &[
        Text(
            "A command and all its children together are limited by the traffic that they cause on the disk. Reads from the page cache cost nothing, nor does data that is rewritten or deleted before it is written to the disk. Processes in the same --class share its limits. A library in the command delays its calls; a program that cannot load the library is held by a supervisor of its system calls, or from outside. discnice-explain(1) shows how a command would be held, and what would escape.",
        ),
        Text(
            "Without a limit a command gives way: it runs at full speed until others use the disk that it uses.",
        ),
    ],
};

/// The sections behind the options of a page.
pub fn of(page: &str) -> Vec<Section> {
    let subcommand = page.strip_prefix("discnice-").unwrap_or_default();
    let status = match subcommand {
        "" | "run" => RUN_STATUS,
        "admit" => ADMIT_STATUS,
        "linger" => LINGER_STATUS,
        "cached" | "order" | "pause" | "doctor" | "rules-test" | "calibrate" | "refresh" => {
            PARTS_STATUS
        }
        _ => STATUS,
    };
    let own: &[Section] = match subcommand {
        "" => &[ABOUT, QUANTITIES],
        "run" | "attach" | "class-set" => &[QUANTITIES],
        _ => &[],
    };
    let common = [status, FILES, ENVIRONMENT, Section::SEE_ALSO];
    own.iter().copied().chain(common).collect()
}

/// The beginning of discnice-config(5).
pub const CONFIG: &[Section] = &[
    Section {
        title: "NAME",
        text: &[Text("discnice-config - the configuration file of discnice")],
    },
    Section {
        title: "SYNOPSIS",
        text: &[
            Text("$XDG_CONFIG_HOME/discnice/config.toml, else ~/.config/discnice/config.toml"),
            Text("/etc/discnice/config.toml"),
        ],
    },
    Section {
        title: "DESCRIPTION",
        text: &[
            Text(
                "A TOML file. It sets the limits that a class gets when it is created; discnice-class(1) changes them later. Values on the command line take precedence. If the file has an error, no command is started, and a message gives line and column. A file that belongs to another user is not read.",
            ),
            Term(
                "strict",
                "If true, a command is not started when a limit cannot hold for it, as with --strict. DISCNICE_STRICT takes precedence.",
            ),
            Term("[default]", "Limits of jobs that are given neither numbers nor a class."),
            Term(
                "[class.NAME]",
                "Limits of the class NAME. [class.session] is for login sessions, see discnice-enter(1); users are shown its message at login.",
            ),
            Term(
                "locked",
                "In the site's file, /etc/discnice/config.toml: a list of \"strict\", \"default\", \"class.NAME\" and \"rules\". A user's file and options can only tighten the settings that it names; with \"rules\", the site's rules come before the user's. Of all other settings, the user's keys replace the site's, one by one. The site's file is read only if the superuser alone can change it; if it has an error, a message says so and the file is ignored.",
            ),
            Term(
                "include",
                "A list of rule files: absolute paths, or names, without .toml, of files in ~/.config/discnice/rules or share/discnice/rules (indexers, thumbnailers, updaters, sync and compilers are shipped). Such a file contains [[rule]] only.",
            ),
            Term(
                "[[rule]]",
                "Puts running processes of the user into a class, within a second of their start; discnice-policyd(1) does this. match is a table of conditions, all of which must hold: exe (path of the program), name (as the kernel has it, at most 15 bytes), cgroup (path of the control group) and cmdline (the arguments, separated by spaces). Each is a shell pattern, or a list of patterns of which one must match. A pattern for a path that does not begin with / is compared with the end of the path; ** matches any number of directories. class = \"NAME\" is the class, and limits = { disk = \"2M\" } are its limits if there is no [class.NAME]; except = true leaves the process alone. The first rule that matches decides: first the rules in this file, then those in included files, then the site's. discnice-rules(1) lists and tests rules.",
            ),
            Term(
                "[preset.NAME]",
                "Limits for a kind of job, which --preset NAME of discnice-run(1) selects; the job gives way to others besides. Predefined are backup and sync (which limit calls on names; sync also the network), build, scan, agent (calls on names, memory, 100 GiB of disk traffic in total) and download; a section with one of these names replaces the preset.",
            ),
            Term(
                "[polite]",
                "Parameters of jobs that are regulated by their progress (--polite), such as alpha = 0.02.",
            ),
        ],
    },
    Section {
        title: "EXAMPLES",
        text: &[Lines(
            "strict = true\ninclude = [\"indexers\"]\n\n[default]\ndisk = \"20M\"\nwhen = \"busy\"\n\n[class.backup]\ndisk-read = \"10%\"\nmeta-ops = 1000\nweight = 50\nguest = true\n\n[[rule]]\nmatch = { exe = \"kf6/baloo_file*\" }\nclass = \"indexers\"",
        )],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_configuration_is_one() {
        let example = CONFIG.iter().flat_map(|section| section.text).find_map(|item| match item {
            Lines(text) => Some(*text),
            _ => None,
        });
        // A key behind the header of a table would be one of that table.
        let path = std::path::Path::new("discnice-config(5)");
        let file = discnice_cli::config::File::parse_bytes(example.unwrap().as_bytes(), path);
        assert!(file.unwrap().class("backup").is_some());
    }
}
