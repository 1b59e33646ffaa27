//! Programs that a class executes: no file may crash the reader of ELF files, or make it read for ever.
#![no_main]

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = std::env::temp_dir().join(format!("discnice-elf-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    let path = folder.join("program");
    // With a beginning that is looked at.
    let head: &[u8] = if bytes.first().is_some_and(|first| first & 1 == 0) { b"\x7fELF\x02\x01\x01" } else { b"" };
    fs::write(&path, [head, bytes.get(1..).unwrap_or(&[])].concat()).expect("room");
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
    let _ = discnice_regulator::startup::kind(libc::AT_FDCWD, name.as_ptr());
    let _ = discnice_regulator::startup::build_id(&name);
});
