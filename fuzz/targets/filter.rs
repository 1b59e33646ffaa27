//! Filters of system calls: no program may crash their interpreter or keep it, and no answer comes from behind their end.
#![no_main]

use discnice_interpose::filter::{Instruction, judge};
use libfuzzer_sys::fuzz_target;

/// What the kernel accepts, most often.
const CODES: [u16; 32] = [
    0x20, 0x00, 0x80, 0x60, 0x01, 0x81, 0x61, 0x02, 0x03, 0x06, 0x16, 0x07, 0x87, 0x05, 0x84, 0x15,
    0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d, 0x04, 0x14, 0x24, 0x34, 0x54, 0x64, 0x74, 0x3c, 0x6c,
];

fuzz_target!(|input: (u32, Vec<(u16, u8, u8, u32)>)| {
    let (number, words) = input;
    let known =
        |code: u16| if code & 0x8000 == 0 { CODES[usize::from(code) % CODES.len()] } else { code };
    let filter: Vec<_> = words
        .into_iter()
        .map(|(code, jt, jf, k)| Instruction { code: known(code), jt, jf, k })
        .collect();
    let answer = judge(&filter, number);
    // Only a return answers, and it does so with its own value unless it is of A.
    let has = |answer: u32| {
        filter.iter().any(|one| one.code == 0x16 || one.code == 0x06 && one.k == answer)
    };
    assert!(answer.is_none_or(has), "{answer:?} from {filter:?}");
    // What follows the end is never reached.
    let longer = [&filter[..], &[Instruction { code: 0x06, jt: 0, jf: 0, k: 0 }; 8]].concat();
    assert!(answer.is_none() || judge(&longer, number) == answer);
});
