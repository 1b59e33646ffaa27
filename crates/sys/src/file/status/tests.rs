extern crate std;

use std::ffi::CString;
use std::format;
use std::fs::{File, metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn a_name_that_is_not_there_has_a_parent() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let there = File::open(&folder).unwrap();
    let inode = |directory: i32, name: &str| {
        let name = CString::new(name).unwrap();
        // SAFETY: a C string.
        unsafe { status_of_parent(directory, name.as_ptr()) }.map(|status| status.inode)
    };
    let inode_of = |path: &str| Ok(metadata(path).unwrap().ino());
    let (own, root) = (inode_of(folder.to_str().unwrap()), inode_of("/"));
    for name in ["new", "new/", "new//", "./new", ""] {
        assert_eq!(inode(there.as_raw_fd(), name), own, "{name}");
    }
    assert_eq!(inode(there.as_raw_fd(), "not there/new"), Err(Errno::NOENT));
    assert_eq!(inode(there.as_raw_fd(), "/new"), root);
    assert_eq!(inode(there.as_raw_fd(), "/proc/self/cwd/new//"), inode_of("."));
    let long = |directories: usize| format!("/{}new", "./".repeat(directories));
    assert_eq!(inode(there.as_raw_fd(), &long(254)), root);
    assert_eq!(inode(there.as_raw_fd(), &long(255)), own);
}

fn told(status: Result<Status, Errno>) -> std::string::String {
    format!("{status:?}")
}

#[test]
fn both_ways_of_asking_agree() {
    let program = std::env::current_exe().unwrap();
    let file = File::open(&program).unwrap();
    let (read, _write) = std::io::pipe().unwrap();
    let all = || {
        [
            told(status(file.as_raw_fd())),
            told(status(read.as_raw_fd())),
            told(status(-1)),
            told(status_at(libc::AT_FDCWD, c"/".as_ptr())),
            told(status_at(libc::AT_FDCWD, c"/dev/null".as_ptr())),
            told(status_at(libc::AT_FDCWD, c"/not there".as_ptr())),
            told(status_at(libc::AT_FDCWD, core::ptr::null())),
            told(status_now(libc::AT_FDCWD, c"/dev/null".as_ptr())),
        ]
    };
    let by_statx = all();
    let known = status(file.as_raw_fd()).unwrap();
    let wanted = metadata(&program).unwrap();
    assert_eq!((known.device, known.inode), (wanted.dev(), wanted.ino()));
    assert_eq!((known.size, known.links), (wanted.size(), wanted.nlink()));
    assert!(known.regular && known.executable && known.kind == FileKind::Disk);
    forgo_statx();
    assert_eq!(all(), by_statx);
}
