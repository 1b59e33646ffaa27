//! Entries of the registry: no bytes may crash their reader, and limits that it accepts do not contradict each other.
#![no_main]

use discnice_registry::entry::Entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first line says when the machine was started, so that what follows may agree with it.
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (boot, text) = bytes.split_at(end);
    if let Some(entry) = Entry::parse(text, &String::from_utf8_lossy(boot)) {
        assert!(entry.limits.check().is_ok());
        let again = entry.text("boot").expect("text");
        assert_eq!(Entry::parse(&again, "boot"), Some(entry));
    }
});
