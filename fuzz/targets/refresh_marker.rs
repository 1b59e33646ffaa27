//! Markers and file names in the work areas of `discnice refresh`: no bytes may crash their
//! readers, and only what the writers write is accepted.
#![no_main]

use discnice_graybox::fldc::refresh::marker::{MARKER_MAX, Marker, WorkFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(marker) = Marker::parse(bytes) {
        assert!(bytes.len() <= MARKER_MAX);
        assert_eq!(marker.to_string().as_bytes(), bytes, "{marker:?}");
    }
    if let Some(entry) = WorkFile::parse(bytes) {
        assert_eq!(entry.to_string().as_bytes(), bytes, "{entry:?}");
    }
});
