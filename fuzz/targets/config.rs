//! config.toml: no text may crash its reader, and each complaint is one line that says where.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = discnice_cli::config::File::parse_bytes(bytes, Path::new("config.toml")) {
        let line = error.to_string();
        assert!(line.starts_with("config.toml:") && !line.contains('\n'), "{line}");
    }
});
