//! Circles that remain, each with the reason.

/// Uses that close a circle and remain.
pub(super) struct Known {
    /// The reason.
    pub why: &'static str,
    /// The file that uses, and the one that is used.
    pub uses: &'static [(&'static str, &'static str)],
}

/// Each use is needed here: if it closes no circle any more, the check fails until it is taken out.
pub(super) const KNOWN: &[Known] = &[
    Known {
        why: "A command line within another one is read as a whole, and the list of commands has the two that do so.",
        uses: &[
            ("crates/cli/src/commands/enter.rs", "crates/cli/src/commands/mod.rs"),
            ("crates/cli/src/commands/mod.rs", "crates/cli/src/commands/oci.rs"),
        ],
    },
    Known {
        why: "These files hold methods of the block, beside the parts that they are about.",
        uses: &[
            ("crates/ledger/src/layout/disk_total.rs", "crates/ledger/src/layout/mod.rs"),
            ("crates/ledger/src/layout/header.rs", "crates/ledger/src/layout/mod.rs"),
            ("crates/ledger/src/layout/mod.rs", "crates/ledger/src/layout/least.rs"),
            ("crates/ledger/src/layout/mod.rs", "crates/ledger/src/layout/unmet.rs"),
        ],
    },
    Known {
        why: "After a crash each of the two processes goes on as the other.",
        uses: &[("crates/supervisor/src/pair.rs", "crates/supervisor/src/supervisor.rs")],
    },
    Known {
        why: "The macro that makes a call through the gate stands beside those that make it directly, which the gate expands to.",
        uses: &[("crates/sys/src/raw.rs", "crates/sys/src/gate.rs")],
    },
    Known {
        why: "These files hold methods of the member and of the watch, beside the parts that they are about.",
        uses: &[
            ("crates/watcher/src/member/mod.rs", "crates/watcher/src/member/role.rs"),
            ("crates/watcher/src/watch/child_classes.rs", "crates/watcher/src/watch/mod.rs"),
            ("crates/watcher/src/watch/mod.rs", "crates/watcher/src/watch/traffic.rs"),
        ],
    },
];
