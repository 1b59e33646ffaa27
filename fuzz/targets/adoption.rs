//! Blocks that another process named: whatever their length, mode and content, nothing is believed but a private
//! file of a class's length that holds a class of this version.
#![no_main]

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use discnice_ledger::Class;
use discnice_sys::block::{self, BlockId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, bool, i8, Vec<u8>)| {
    let (mode, is_whole, beside, content) = input;
    let folder = std::env::temp_dir().join(format!("discnice-adoption-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    let path = folder.join("block");
    fs::write(&path, &content).expect("room");
    let length = if is_whole { Class::SIZE.saturating_add_signed(beside.into()) } else { content.len() };
    fs::File::options().write(true).open(&path).expect("ours").set_len(length as u64).expect("room");
    let mode = u32::from(mode) & 0o777 | 0o600;
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
    let block = block::adopt_file(BlockId::of_file(1), &name, Class::SIZE);
    assert_eq!(block.is_ok(), mode & 0o077 == 0 && length == Class::SIZE, "{mode:o}, {length}");
    if let Ok(block) = block {
        // SAFETY: mapped, so long, at a page's start.
        if let Ok(class) = unsafe { Class::adopt(block.start, block.length, None) } {
            let _ = (class.name(), class.limits(), class.board());
            let _ = class.living(|_| true).take(100).count();
        }
        // SAFETY: nothing refers to the mapping any more.
        unsafe { block.unmap() };
    }
    fs::remove_file(&path).expect("ours");
});
