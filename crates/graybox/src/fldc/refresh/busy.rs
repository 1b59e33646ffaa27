//! Who has members of a tree open: after the swap they would go on in the old one.

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_escape::Foreign;
use rustix::fs::FileType;

use super::meta::{Location, open_quietly};
use super::raw::is_open_elsewhere;
use super::tree::{Cursor, Tree};

/// One line for each member that another process uses: "PATH: in use by …".
///
/// Regular files are asked for by lease, which sees every process. Directories and the names of
/// the users come from /proc, where we see our own processes, or all as root.
pub fn users(tree: &Tree, root: std::os::fd::BorrowedFd<'_>) -> Vec<String> {
    let holders = holders(tree);
    let mut cursor = Cursor::new(tree, root);
    let mut lines = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let used = match holders.get(&index) {
            Some(who) => Some(format!("process {who}")),
            None if node.meta.kind() == FileType::RegularFile => cursor
                .directory_of(index)
                .and_then(|dir| open_quietly(Location { dir, name: &node.name }))
                .is_ok_and(|file| is_open_elsewhere(file.as_fd()))
                .then(|| "another process".into()),
            // A server that listens on it would not be found at the copy.
            None if node.meta.kind() == FileType::Socket => Some("its server, maybe".into()),
            None => None,
        };
        if let Some(who) = used {
            lines.push(format!("{}: in use by {who}", tree.display(index)));
        }
    }
    lines
}

/// Members that a process visible to us has open, as working directory, root or program.
fn holders(tree: &Tree) -> HashMap<usize, String> {
    let by_inode: HashMap<(u64, u64), usize> = tree
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let (major, minor) = node.meta.dev;
            ((rustix::fs::makedev(major, minor), node.meta.ino), index)
        })
        .collect();
    let mut found = HashMap::new();
    let own = std::process::id();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == own {
            continue;
        }
        for link in links_of(&process.path()) {
            let Ok(target) = fs::metadata(&link) else { continue };
            if let Some(index) = by_inode.get(&(target.dev(), target.ino())) {
                found.entry(*index).or_insert_with(|| describe(pid));
            }
        }
    }
    found
}

fn links_of(process: &Path) -> Vec<std::path::PathBuf> {
    let mut links: Vec<_> = ["cwd", "root", "exe"].map(|name| process.join(name)).into();
    let open = fs::read_dir(process.join("fd"));
    links.extend(open.into_iter().flatten().flatten().map(|entry| entry.path()));
    links
}

fn describe(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{pid} ({})", Foreign::text(name.trim()))
}
