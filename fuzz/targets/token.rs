//! The value of `DISCNICE`: no bytes may crash its reader, and what is accepted is what was written.
#![no_main]

use discnice_ledger::Token;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(token) = Token::parse(bytes) {
        let mut text = Vec::new();
        token.write(|part| text.extend_from_slice(part));
        assert_eq!(Token::parse(&text), Some(token));
    }
});
