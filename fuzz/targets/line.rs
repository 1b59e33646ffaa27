//! What clients say to policyd: no line may crash its reader.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(block) = discnice_watcher::daemon::server::parse(bytes) {
        let line = format!("watch {block:x}\n");
        assert_eq!(discnice_watcher::daemon::server::parse(line.as_bytes()), Some(block));
    }
});
