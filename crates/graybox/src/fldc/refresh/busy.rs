//! Names of the processes that have files open, for people.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use discnice_escape::Foreign;
use discnice_sys::procfs;

//= gray-box/4.2.5-users-of-inodes
/// Processes that have these files open, by device and inode: "12 (bash)". Only processes that
/// this user may look at are found, all as root.
pub fn users(files: &HashMap<(u64, u64), usize>) -> HashMap<usize, String> {
    let mut found = HashMap::new();
    let own = std::process::id();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if files.is_empty() || pid == own || procfs::is_executing(pid) {
            continue;
        }
        for link in links_of(&process.path()) {
            let Ok(target) = fs::metadata(&link) else { continue };
            if let Some(index) = files.get(&(target.dev(), target.ino())) {
                found.entry(*index).or_insert_with(|| describe(pid));
            }
        }
    }
    found
}

fn links_of(process: &Path) -> Vec<std::path::PathBuf> {
    let mut links = vec![process.join("exe")];
    let open = fs::read_dir(process.join("fd"));
    links.extend(open.into_iter().flatten().flatten().map(|entry| entry.path()));
    links
}

fn describe(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{pid} ({})", Foreign::text(name.trim()))
}
