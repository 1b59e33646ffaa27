//! Environment blocks: whatever a program hands over, what is carried is found again by its child and nothing else changes.
#![no_main]

use std::ffi::{CStr, c_char};
use std::ptr;

use discnice_interpose::environment::{Carry, Scratch, Variables};
use discnice_ledger::{MemberId, Token};
use discnice_sys::block::BlockId;
use libfuzzer_sys::fuzz_target;

const LIST: &[u8] = b"LD_PRELOAD=";

/// Names that matter, in front of some of the texts.
const NAMES: [&[u8]; 5] = [
    b"LD_PRELOAD=",
    b"DISCNICE=",
    b"LD_TRACE_LOADED_OBJECTS=",
    b"LD_PRELOAD=/x/libdiscnice.so:",
    b"",
];

thread_local! {
    // Kept, as the library keeps a thread's: its memory is never given back.
    static SCRATCH: Scratch = Scratch::default();
}

/// A block in writable memory, with its texts.
fn block(texts: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<*mut c_char>) {
    let mut texts: Vec<Vec<u8>> = texts.iter().map(|text| [text, &b"\0"[..]].concat()).collect();
    let mut pointers: Vec<*mut c_char> =
        texts.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
    pointers.push(ptr::null_mut());
    (texts, pointers)
}

/// The texts of a block that ends with null.
unsafe fn texts(mut at: *const *const c_char) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // SAFETY: the caller vouches for the block.
    unsafe {
        while !(*at).is_null() {
            all.push(CStr::from_ptr(*at).to_bytes().to_vec());
            at = at.add(1);
        }
    }
    all
}

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, Vec<u8>, u64, Option<(u32, u32)>, bool)| {
    let (entries, library, nonce, member, whole) = input;
    let clean = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != 0).collect::<Vec<u8>>();
    let given: Vec<Vec<u8>> = entries
        .iter()
        .map(|(name, text)| {
            clean(&[NAMES.get(usize::from(*name)).unwrap_or(&&b""[..]), &text[..]].concat())
        })
        .collect();
    // What brought the library here.
    let variables = Variables::new();
    let (_texts, mut own) = block(&[
        [LIST, b"/run/", &clean(&library), b"/libdiscnice.so"].concat(),
        b"DISCNICE=1:2".to_vec(),
    ]);
    // SAFETY: all of it is writable.
    let found = unsafe { variables.take(own.as_mut_ptr()) };
    assert!(found.is_some());
    let member = member.map(|(index, generation)| MemberId { index, generation });
    let token = Token { block: BlockId::from_claim(1), nonce, member, directory: None };
    let carry = if whole { Carry::Library } else { Carry::Class };
    let (_given, pointers) = block(&given);
    // SAFETY: a block in memory of this process.
    let written = SCRATCH.with(|scratch| unsafe {
        let with = variables.with_ours(pointers.as_ptr().cast(), scratch, &token, carry);
        with.map(|with| texts(with))
    });
    let Some(written) = written else { return };
    let is_list = |text: &&Vec<u8>| text.starts_with(LIST);
    let others = |texts: &[Vec<u8>]| {
        texts
            .iter()
            .filter(|text| !is_list(text) && !text.starts_with(b"DISCNICE="))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(others(&written), others(&given));
    let last = given.iter().rfind(is_list).map(|list| &list[LIST.len()..]).unwrap_or(b"");
    if whole {
        let lists: Vec<_> = written.iter().filter(is_list).collect();
        assert!(lists.len() == 1 && lists[0].ends_with(last), "{lists:?}");
    }
    let (_written, mut next) = block(&written);
    // SAFETY: all of it is writable.
    let taken = unsafe { Variables::new().take(next.as_mut_ptr()) };
    assert_eq!(taken, Some(token));
});
