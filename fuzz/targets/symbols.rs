//! The look-up of symbols: in tables of any names, buckets and filters, each name that is defined for new programs is found
//! where it is, and no other.
#![no_main]

use std::collections::BTreeMap;
use std::ffi::CString;

use discnice_interpose::symbols::{DynamicEntry, Found, Tables, hash};
use libfuzzer_sys::fuzz_target;

/// Kinds of symbols (`STT_FUNC`, `STT_OBJECT`, `STT_GNU_IFUNC`), and whether one is hidden by its version.
type Kind = (u8, bool);

fn name(bytes: &[u8]) -> CString {
    let clean: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(clean).expect("no zero")
}

/// Words of memory, behind each other.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Memory {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The next address that so many bytes divide.
    fn align(&mut self) -> usize {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.len()
    }
}

fuzz_target!(|input: (BTreeMap<Vec<u8>, Kind>, Vec<Vec<u8>>, u8, u8, u8)| {
    let (names, others, buckets, words, shift) = input;
    let buckets = u32::from(buckets).max(1);
    let (words, shift) = (1u32 << (words % 6), u32::from(shift) % 32);
    let mut defined: Vec<(CString, Kind)> =
        names.into_iter().map(|(bytes, kind)| (name(&bytes), kind)).collect();
    defined.sort_by_key(|(name, _)| name.clone());
    defined.dedup_by_key(|(name, _)| name.clone());
    defined.sort_by_key(|(name, _)| hash(name) % buckets);
    let kind = |number: u8| [2u8, 1, 10][usize::from(number) % 3];

    let (mut memory, mut symbols, mut versions) = (Memory::default(), vec![[0u8; 24]], vec![0u16]);
    memory.put(b"\0");
    for (index, (name, (number, is_hidden))) in defined.iter().enumerate() {
        let mut symbol = [0; 24];
        symbol[..4].copy_from_slice(&(memory.0.len() as u32).to_ne_bytes());
        (symbol[4], symbol[6]) = (1 << 4 | kind(*number), 1);
        symbol[8..16].copy_from_slice(&(index as u64 * 16 + 64).to_ne_bytes());
        memory.put(name.to_bytes_with_nul());
        symbols.push(symbol);
        versions.push(if *is_hidden { 0x8002 } else { 2 });
    }
    let at_symbols = memory.align();
    memory.put(&symbols.concat());
    let at_versions = memory.align();
    versions.iter().for_each(|version| memory.put(&version.to_ne_bytes()));
    let at_hashes = memory.align();
    [buckets, 1, words, shift].iter().for_each(|word| memory.put(&word.to_ne_bytes()));
    let mut filter = vec![0u64; words as usize];
    for (name, _) in &defined {
        let hash = hash(name);
        filter[(hash / 64 % words) as usize] |= 1 << (hash % 64) | 1 << ((hash >> shift) % 64);
    }
    filter.iter().for_each(|word| memory.put(&word.to_ne_bytes()));
    for bucket in 0..buckets {
        let first = defined.iter().position(|(name, _)| hash(name) % buckets == bucket);
        memory.put(&first.map_or(0, |first| first as u32 + 1).to_ne_bytes());
    }
    for (index, (name, _)) in defined.iter().enumerate() {
        let bucket = |name: &CString| hash(name) % buckets;
        let is_last = defined.get(index + 1).is_none_or(|(next, _)| bucket(next) != bucket(name));
        memory.put(&(hash(name) & !1 | u32::from(is_last)).to_ne_bytes());
    }

    let aligned: Vec<u64> = memory
        .0
        .chunks(8)
        .map(|part| part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
        .collect();
    let base = aligned.as_ptr() as usize;
    let entry = |tag, value| DynamicEntry { tag, value };
    // The table of names lies at the base: an address that the dynamic linker has relocated.
    let dynamic = [
        entry(5, base),
        entry(6, at_symbols),
        entry(0x6fff_fff0, at_versions),
        entry(0x6fff_fef5, at_hashes),
        entry(0, 0),
    ];
    // SAFETY: the tables are whole, and stay.
    let tables = unsafe { Tables::read(base, dynamic.as_ptr()) }.expect("tables");
    let others = others.iter().map(|bytes| name(bytes));
    for asked in defined.iter().map(|(name, _)| name.clone()).chain(others) {
        let known = defined.iter().position(|(name, _)| *name == asked);
        let expected =
            known.map(|index| (index, defined[index].1)).filter(|(_, (_, is_hidden))| !is_hidden);
        match (tables.find(&asked, hash(&asked)), expected) {
            (Found::Nothing, None) => {}
            (Found::At(address), Some((index, (number, _)))) => {
                assert!(kind(number) != 10 && address as usize == base + index * 16 + 64);
            }
            (Found::Other, Some((_, (number, _)))) => assert_eq!(kind(number), 10),
            (found, expected) => panic!("{asked:?}: {found:?}, not {expected:?}"),
        }
    }
});
