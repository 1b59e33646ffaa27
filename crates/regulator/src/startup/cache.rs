//! `/etc/ld.so.cache`: where ld.so(8) finds a library by its name.
//!
//! The format is that of glibc since 2.2 (`glibc-ld.so.cache1.1`, sysdeps/generic/dl-cache.h): a
//! header of 48 bytes, entries of 24 bytes in descending order of the name, and strings, with
//! offsets that count from the file's start.

use core::cmp::Ordering;

use crate::startup::elf::string;
use crate::startup::text::Text;
use crate::startup::{Bytes, number};

const MAGIC: &[u8; 20] = b"glibc-ld.so.cache1.1";
const HEADER: u64 = 48;
const ENTRY: usize = 24;
/// Flags of a library for this machine's 64-bit programs (`FLAG_ELF_LIBC6` and the machine's).
const FLAGS: u64 = if cfg!(target_arch = "x86_64") { 0x0303 } else { 0x0a03 };
/// A library may be there several times, for machines with more features; so many are looked at.
const VARIANTS: u32 = 8;

/// One entry.
struct Entry {
    flags: u64,
    /// Offsets of the name and of the path.
    name: u64,
    path: u64,
    /// Features of the machine that it is for; zero for any.
    features: u64,
}

fn entry(file: &impl Bytes, index: u32) -> Option<Entry> {
    let bytes: [u8; ENTRY] = file.array(HEADER + u64::from(index) * ENTRY as u64)?;
    Some(Entry {
        flags: number::<4>(&bytes, 0),
        name: number::<4>(&bytes, 4),
        path: number::<4>(&bytes, 8),
        features: number::<8>(&bytes, 16),
    })
}

/// Puts the path of the library `name` into `path`; returns whether the cache has one. Of several
/// the one for every machine is taken.
pub fn find(file: &impl Bytes, name: &[u8], path: &mut Text) -> bool {
    let Some(header) = file.array::<{ HEADER as usize }>(0) else { return false };
    if !header.starts_with(MAGIC) {
        return false;
    }
    let count = number::<4>(&header, 20) as u32;
    let first = first_of(file, count, name, path);
    for index in first..count.min(first.saturating_add(VARIANTS)) {
        let Some(entry) = entry(file, index) else { return false };
        if !string(file, entry.name, path) || compare(path.bytes(), name) != Ordering::Equal {
            return false;
        }
        if entry.flags == FLAGS && entry.features == 0 {
            return string(file, entry.path, path) && path.bytes().starts_with(b"/");
        }
    }
    false
}

/// Returns the first entry with a name that is not before `name`, by bisection.
fn first_of(file: &impl Bytes, count: u32, name: &[u8], scratch: &mut Text) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        let readable = entry(file, middle).is_some_and(|entry| string(file, entry.name, scratch));
        if readable && compare(scratch.bytes(), name) == Ordering::Greater {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The order of the cache: bytes, but runs of digits as numbers, which stand behind all others.
fn compare(mut left: &[u8], mut right: &[u8]) -> Ordering {
    loop {
        let order = match (left.first(), right.first()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match (a.is_ascii_digit(), b.is_ascii_digit()) {
                (true, true) => take_number(&mut left).cmp(&take_number(&mut right)),
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let order = (*a as i8).cmp(&(*b as i8));
                    left = left.get(1..).unwrap_or(&[]);
                    right = right.get(1..).unwrap_or(&[]);
                    order
                }
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the digits off the front; a number too large for the dynamic linker wraps there too.
fn take_number(text: &mut &[u8]) -> i32 {
    let mut value = 0i32;
    while let Some((digit, rest)) = text.split_first()
        && digit.is_ascii_digit()
    {
        value = value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
        *text = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_requirements::skip;
    use proptest::prelude::*;
    use std::process::Command;

    const REAL: &str = "/etc/ld.so.cache";

    #[test]
    fn finds_what_ldconfig_lists() {
        let Ok(cache) = std::fs::read(REAL) else { skip!("no {REAL}") };
        let Ok(listed) = Command::new("/sbin/ldconfig").arg("-p").output() else {
            skip!("no /sbin/ldconfig");
        };
        let text = String::from_utf8(listed.stdout).expect("text");
        // "	libz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1"
        let machine =
            if cfg!(target_arch = "x86_64") { "(libc6,x86-64)" } else { "(libc6,AArch64)" };
        let entries: Vec<_> = text.lines().filter(|line| line.contains(machine)).collect();
        assert!(!entries.is_empty(), "{text}");
        let mut path = Text::new();
        for line in entries {
            let name = line.split_whitespace().next().expect("a name");
            assert!(find(&&cache[..], name.as_bytes(), &mut path), "{line}");
            let found = std::str::from_utf8(path.bytes()).expect("text");
            assert!(
                text.lines().any(|line| line.trim().starts_with(name) && line.ends_with(found))
            );
        }
        for absent in ["", "a", "libc.so", "libc.so.60", "zzz"] {
            let listed = text.lines().any(|line| line.trim().starts_with(&format!("{absent} ")));
            assert_eq!(find(&&cache[..], absent.as_bytes(), &mut path), listed, "{absent}");
        }
    }

    #[test]
    fn digits_are_compared_as_numbers() {
        for (left, right) in
            [("libx.so.9", "libx.so.10"), ("liba", "lib1"), ("lib", "liba"), ("a", "b")]
        {
            assert_eq!(
                compare(left.as_bytes(), right.as_bytes()),
                Ordering::Less,
                "{left} {right}"
            );
            assert_eq!(compare(right.as_bytes(), left.as_bytes()), Ordering::Greater);
        }
        assert_eq!(compare(b"lib01", b"lib1"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn damaged_files_are_survived(
            damage in prop::collection::vec((0.0..1.0f64, any::<u8>()), 0..60),
            count in any::<u32>(),
            length in 0.0..2.0f64,
        ) {
            let mut file = std::fs::read(REAL).unwrap_or_default();
            file.resize(file.len().max(64), 0);
            file[..20].copy_from_slice(MAGIC);
            file[20..24].copy_from_slice(&count.to_ne_bytes());
            let size = file.len();
            for (place, byte) in damage {
                file[24.max((place * size as f64) as usize)] = byte;
            }
            file.truncate((length * size as f64) as usize);
            find(&&file[..], b"libc.so.6", &mut Text::new());
        }
    }
}
