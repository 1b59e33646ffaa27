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

const OWN: Item =
    Term("125", "An error of DiscNice, told in one line on standard error. Nothing was changed.");
const FINE: Item = Term("0", "All went well.");

const RUN_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        Term(
            "the command's",
            "What the command ends with. One that a signal killed is repeated as that.",
        ),
        OWN,
        Term("126", "The command cannot be executed."),
        Term("127", "There is no such command."),
    ],
};
const ADMIT_STATUS: Section = Section {
    title: "EXIT STATUS",
    text: &[
        Term("the command's", "What the command ends with."),
        Term("124", "The memory did not come free within --timeout."),
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
            "Some of what was named failed, or what was looked at is not well; each is told in one line.",
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
            "Limits of new classes; discnice-config(5).",
        ),
        Term("/etc/discnice/config.toml", "Those of the site."),
        Term(
            "$XDG_RUNTIME_DIR/discnice/",
            "Names of classes, the daemon's socket and copies of the library. Without that variable a private directory below /tmp.",
        ),
        Term(
            "$XDG_CACHE_HOME/discnice/profile.toml (~/.cache/discnice/profile.toml)",
            "What discnice-calibrate(1) measured.",
        ),
        Term(
            "$XDG_STATE_HOME/discnice/targets/ (~/.local/state/discnice/targets/)",
            "What --polite has learned of jobs.",
        ),
    ],
};

const ENVIRONMENT: Section = Section {
    title: "ENVIRONMENT",
    text: &[
        Term("DISCNICE_STRICT", "1 is --strict, 0 is not, whatever config.toml says."),
        Term(
            "XDG_CONFIG_HOME, XDG_RUNTIME_DIR, XDG_CACHE_HOME, XDG_STATE_HOME, HOME",
            "Where files are, see there. Directories of other users are not used.",
        ),
        Term("NO_COLOR", "Help without colours."),
        Term(
            "LD_PRELOAD, DISCNICE",
            "Set for commands that are held by the library, and taken out before the command looks at its environment.",
        ),
    ],
};

const QUANTITIES: Section = Section {
    title: "QUANTITIES",
    text: &[
        Text(
            "Sizes and rates are numbers with a unit, in any case: B, K, M, G, T (or KiB and so on) count in 1024s, KB, MB, GB, TB in 1000s. A rate may end in /s. A rate below 4096 needs its unit, as 5 is usually meant to be 5M. A rate of the disk may be a part of what discnice-calibrate(1) measured, such as 10%. unlimited lifts a limit.",
        ),
        Text("Durations are those of systemd.time(7): 90, 5min, 1h30min."),
    ],
};

const ABOUT: Section = Section {
    title: "HOW COMMANDS ARE HELD",
    text: &[
        Text(
            "A command is held together with all its children, by the traffic that it really causes on the disk: reads from the page cache and data that is rewritten or deleted before it is written cost nothing. Processes with the same --class share its limits. A library in the command holds its calls; programs that it cannot enter are held by a supervisor of their calls, or from outside. discnice-explain(1) tells by what a command would be held, and what would escape.",
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
        text: &[Text("discnice-config - limits of classes that discnice makes")],
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
                "A file of TOML. It says which limits a class gets when it is made; discnice-class(1) changes them later. A value that is given on the command line has precedence over one of this file. A file with an error starts nothing: its line and column are told. A file of another user is not read.",
            ),
            Term(
                "strict",
                "true: a command is not started if a limit cannot hold for it, as by --strict. DISCNICE_STRICT has precedence.",
            ),
            Term("[default]", "Limits of a job that was given neither numbers nor a class."),
            Term(
                "[class.NAME]",
                "Limits of the class of this name. [class.session] is of login sessions, by discnice-enter(1); its message is what users are told at login.",
            ),
            Term(
                "locked",
                "In the site's file, /etc/discnice/config.toml: a list of \"strict\", \"default\" and \"class.NAME\", of which a user's file and options can only tighten what stands there, and \"rules\": the site's are asked before the user's. Where nothing is locked, the user's keys replace the site's, one by one. The site's file is read only if nobody but the superuser can change it; with an error it is told of and not followed.",
            ),
            Term(
                "include",
                "A list of files of rules: names of files in ~/.config/discnice/rules or share/discnice/rules without .toml (shipped are indexers, thumbnailers, updaters, sync, compilers), or absolute paths. They contain [[rule]] only.",
            ),
            Term(
                "[[rule]]",
                "Puts running processes of the user into a class, by discnice-policyd(1) within a second of their start. match is a table of conditions, all of which must hold: exe (path of the program), name (the kernel's, at most 15 bytes), cgroup (path of the control group), cmdline (arguments with a blank between them); each a pattern as of a shell, or a list of them, of which one must match. A path without / in front is compared with the end of the path; ** matches any number of directories. class = \"NAME\" is the class, limits = { disk = \"2M\" } its limits where there is no [class.NAME]; except = true leaves the process alone. The first rule that matches decides: of this file, of the files that it includes, of the site's. discnice-rules(1) lists and tests them.",
            ),
            Term(
                "[preset.NAME]",
                "Limits of a kind of jobs, for --preset NAME of discnice-run(1): they stand over those of a job that gives way. There are backup and sync (calls on names; sync also the network), build, scan, agent (calls on names, memory, 100 GiB of disk traffic in all) and download; a section of one of these names stands instead of it.",
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
            "strict = true\n\n[default]\ndisk = \"20M\"\nwhen = \"busy\"\n\n[class.backup]\ndisk-read = \"10%\"\nmeta-ops = 1000\nweight = 50\nguest = true\n\ninclude = [\"indexers\"]\n\n[[rule]]\nmatch = { exe = \"kf6/baloo_file*\" }\nclass = \"indexers\"",
        )],
    },
];
