//! Finds functions behind ours, as dlsym(3) with `RTLD_NEXT` would.
//!
//! dlsym allocates memory to remember that it did not find something, and takes six hundred
//! instructions for each name, in every program that starts. So the objects that the dynamic
//! linker lists after this library are asked in turn, each once for all names: the list is the one
//! that it keeps for debuggers (`_r_debug`, <link.h>), the tables are those of the ELF gABI and of
//! `DT_GNU_HASH`. Names in tables of another kind, and functions that choose themselves
//! (`STT_GNU_IFUNC`), are left to dlsym.

#![allow(unsafe_code, reason = "tables of loaded objects are raw memory")]

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// What the dynamic linker says of itself: the head of `struct r_debug`.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const Object,
}

/// A loaded object: the public head of `struct link_map`.
#[repr(C)]
struct Object {
    base: usize,
    name: *const c_char,
    dynamic: *const DynamicEntry,
    next: *const Object,
}

/// An entry of a dynamic section, `Elf64_Dyn`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DynamicEntry {
    /// What it says.
    pub tag: isize,
    /// An address or a number.
    pub value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

const DT_NULL: isize = 0;
const DT_STRTAB: isize = 5;
const DT_SYMTAB: isize = 6;
const DT_GNU_HASH: isize = 0x6fff_fef5;
const DT_VERSYM: isize = 0x6fff_fff0;
/// In a table of versions: not the one that a new program gets.
const HIDDEN: u16 = 0x8000;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;

unsafe extern "C" {
    static _r_debug: Debug;
    // The linker's own name for this library's dynamic section.
    #[link_name = "_DYNAMIC"]
    static OWN: DynamicEntry;
}

/// The hash of a name in `DT_GNU_HASH`.
pub const fn hash(name: &CStr) -> u32 {
    let bytes = name.to_bytes();
    let (mut hash, mut at) = (5381u32, 0);
    while at < bytes.len() {
        hash = hash.wrapping_mul(33).wrapping_add(bytes[at] as u32);
        at += 1;
    }
    hash
}

/// What was found under a name.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// This.
    At(*mut c_void),
    /// Something that dlsym(3) must be asked about.
    Other,
}

/// The tables of one object.
#[derive(Debug)]
pub struct Tables {
    base: usize,
    names: *const c_char,
    symbols: *const Symbol,
    /// Null if there are no versions.
    versions: *const u16,
    buckets: *const u32,
    bucket_count: u32,
    /// The first symbol that is hashed, and the hashes from there on.
    first: u32,
    chain: *const u32,
    bloom: *const usize,
    bloom_count: u32,
    bloom_shift: u32,
}

/// Objects that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects after this library: `RTLD_NEXT`.
    AfterUs,
    /// All: `RTLD_DEFAULT`.
    All,
}

/// Calls `with` for each object, in the order of search. Returns false if the list cannot be
/// followed, or an object not be searched.
pub fn for_each(scope: Scope, mut with: impl FnMut(&Tables)) -> bool {
    // SAFETY: the dynamic linker's own, which it changes only while it loads something; a program
    // that starts has no second thread that could.
    let mut object = unsafe { _r_debug.first };
    let (mut found, mut whole) = (false, true);
    while !object.is_null() {
        // SAFETY: an object of the list, which is never unloaded before the program starts.
        let this = unsafe { &*object };
        if (found || scope == Scope::All) && !this.dynamic.is_null() {
            // SAFETY: the dynamic linker has loaded the object.
            match unsafe { Tables::read(this.base, this.dynamic) } {
                Some(tables) => with(&tables),
                None => whole = false,
            }
        }
        found |= ptr::eq(this.dynamic, &raw const OWN);
        object = this.next;
    }
    found && whole
}

impl Tables {
    /// Finds the tables of an object that is loaded at `base`; `None` where there are none that can be searched.
    ///
    /// # Safety
    /// `dynamic` is the dynamic section of a loaded object, which stays.
    pub unsafe fn read(base: usize, dynamic: *const DynamicEntry) -> Option<Self> {
        let (mut names, mut symbols, mut versions, mut hashes) = (0, 0, 0, 0);
        let mut entry = dynamic;
        // SAFETY: a dynamic section ends with an entry of this tag.
        while unsafe { (*entry).tag } != DT_NULL {
            // SAFETY: as above.
            let DynamicEntry { tag, value } = unsafe { entry.read() };
            // glibc has added the base already, except where the section is read-only (the vDSO's).
            let address = if value < base { base + value } else { value };
            match tag {
                DT_STRTAB => names = address,
                DT_SYMTAB => symbols = address,
                DT_VERSYM => versions = address,
                DT_GNU_HASH => hashes = address,
                _ => {}
            }
            // SAFETY: not the last entry.
            entry = unsafe { entry.add(1) };
        }
        (names != 0 && symbols != 0 && hashes != 0)
            .then(|| Self::with(base, names, symbols, versions, hashes))
    }

    fn with(base: usize, names: usize, symbols: usize, versions: usize, hashes: usize) -> Self {
        let header = ptr::with_exposed_provenance::<u32>(hashes);
        // SAFETY: the section begins with four numbers: buckets, first symbol, words and shift of
        // the filter; these words, the buckets and the hashes follow.
        let [bucket_count, first, bloom_count, bloom_shift] =
            unsafe { header.cast::<[u32; 4]>().read() };
        let bloom = hashes + 16;
        let buckets = bloom + bloom_count as usize * size_of::<usize>();
        Self {
            base,
            names: ptr::with_exposed_provenance(names),
            symbols: ptr::with_exposed_provenance(symbols),
            versions: ptr::with_exposed_provenance(versions),
            buckets: ptr::with_exposed_provenance(buckets),
            bucket_count,
            first,
            chain: ptr::with_exposed_provenance(buckets + 4 * bucket_count as usize),
            bloom: ptr::with_exposed_provenance(bloom),
            bloom_count,
            bloom_shift,
        }
    }

    /// Looks for a name.
    pub fn find(&self, name: &CStr, hash: u32) -> Found {
        if !self.may_have(hash) {
            return Found::Nothing;
        }
        // SAFETY: there are that many buckets; each holds a symbol's number, or zero.
        let mut number = unsafe { *self.buckets.add((hash % self.bucket_count) as usize) };
        if number < self.first {
            return Found::Nothing;
        }
        loop {
            // SAFETY: each hashed symbol has its hash in the chain, of which bit 0 marks the last
            // one of a bucket.
            let other = unsafe { *self.chain.add((number - self.first) as usize) };
            if other | 1 == hash | 1
                && let Some(found) = self.symbol(name, number)
            {
                return found;
            }
            if other & 1 != 0 {
                return Found::Nothing;
            }
            number += 1;
        }
    }

    /// Returns true if the filter lets a hash pass.
    fn may_have(&self, hash: u32) -> bool {
        if self.bucket_count == 0 || self.bloom_count == 0 {
            return false;
        }
        let word = (hash / usize::BITS) & (self.bloom_count - 1);
        // SAFETY: the filter has that many words, a power of two.
        let bits = unsafe { *self.bloom.add(word as usize) };
        let second = hash.checked_shr(self.bloom_shift).unwrap_or(0);
        bits >> (hash % usize::BITS) & bits >> (second % usize::BITS) & 1 != 0
    }

    /// The symbol of this number, if it has this name and is defined there for new programs.
    fn symbol(&self, name: &CStr, number: u32) -> Option<Found> {
        // SAFETY: a hashed symbol is in the table of symbols.
        let symbol = unsafe { &*self.symbols.add(number as usize) };
        // SAFETY: its name is in the table of names.
        let own = unsafe { CStr::from_ptr(self.names.add(symbol.name as usize)) };
        if symbol.section == 0 || own != name {
            return None;
        }
        // SAFETY: the table of versions, if there is one, has a number for each symbol.
        if !self.versions.is_null() && unsafe { *self.versions.add(number as usize) } & HIDDEN != 0
        {
            return None;
        }
        Some(match symbol.info & 0xf {
            STT_FUNC | STT_OBJECT => {
                Found::At(ptr::with_exposed_provenance_mut(self.base + symbol.value))
            }
            _ => Found::Other,
        })
    }
}
