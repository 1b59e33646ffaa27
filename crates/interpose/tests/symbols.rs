//! The look-up of symbols in real files: what the tables say, what dlsym(3) says, and what is defined.
#![allow(unsafe_code, reason = "tables are raw memory")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;
use std::process::Command;

use discnice_interpose::symbols::{DynamicEntry, Found, Scope, Tables, for_each, hash};
use discnice_requirements::skip;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_HASH: isize = 4;
const DT_STRTAB: isize = 5;
const DT_SYMTAB: isize = 6;
const DT_VERSYM: isize = 0x6fff_fff0;
const HIDDEN: u64 = 0x8000;

/// A file as the dynamic linker would have mapped it, without relocation.
struct Image {
    memory: Vec<u64>,
    dynamic: usize,
}

/// A little-endian number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Image {
    fn of(path: &Path) -> Self {
        let file = fs::read(path).expect("a file");
        let (table, count) = (number(&file, 32, 8) as usize, number(&file, 56, 2) as usize);
        let headers = (0..count).map(|index| &file[table + 56 * index..][..56]);
        let mut image = Self { memory: Vec::new(), dynamic: 0 };
        for header in headers {
            let [offset, address, length, in_memory] =
                [8, 16, 32, 40].map(|at| number(header, at, 8) as usize);
            match number(header, 0, 4) {
                PT_LOAD => {
                    let needed = (address + in_memory).div_ceil(8).max(image.memory.len());
                    image.memory.resize(needed, 0);
                    for (index, byte) in file[offset..offset + length].iter().enumerate() {
                        let at = address + index;
                        image.memory[at / 8] |= u64::from(*byte) << (8 * (at % 8));
                    }
                }
                PT_DYNAMIC => image.dynamic = address,
                _ => {}
            }
        }
        image
    }

    fn base(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    fn bytes(&self, at: usize, length: usize) -> u64 {
        (0..length).rev().fold(0, |number, index| {
            let at = at + index;
            number << 8 | self.memory[at / 8] >> (8 * (at % 8)) & 0xff
        })
    }

    /// An address in the dynamic section.
    fn entry(&self, tag: isize) -> Option<usize> {
        let mut entries =
            (self.dynamic..).step_by(16).map(|at| [self.bytes(at, 8), self.bytes(at + 8, 8)]);
        let found = entries.find(|[own, _]| *own == 0 || *own == tag as u64)?;
        (found[0] != 0).then_some(found[1] as usize)
    }

    fn name(&self, at: usize) -> CString {
        let bytes = (at..).map(|at| self.bytes(at, 1) as u8).take_while(|byte| *byte != 0);
        CString::new(bytes.collect::<Vec<_>>()).expect("no zero")
    }

    fn tables(&self) -> Option<Tables> {
        let dynamic = self.base() + self.dynamic;
        // SAFETY: the image lies in memory as the file says, and longer than the tables are used.
        unsafe {
            Tables::read(self.base(), std::ptr::with_exposed_provenance::<DynamicEntry>(dynamic))
        }
    }

    /// What each name is for a new program, from the whole table of symbols: an address, or something for dlsym.
    fn defined(&self) -> BTreeMap<CString, Option<usize>> {
        let [hashes, names, symbols] =
            [DT_HASH, DT_STRTAB, DT_SYMTAB].map(|tag| self.entry(tag).expect("a table"));
        let versions = self.entry(DT_VERSYM);
        let count = self.bytes(hashes + 4, 4) as usize;
        let mut defined = BTreeMap::new();
        for index in 1..count {
            let symbol = symbols + 24 * index;
            let [name, info, section] =
                [(0, 4), (4, 1), (6, 2)].map(|(at, length)| self.bytes(symbol + at, length));
            let hidden =
                versions.is_some_and(|table| self.bytes(table + 2 * index, 2) & HIDDEN != 0);
            if section != 0 && !hidden && info >> 4 != 0 {
                let address = self.base() + self.bytes(symbol + 8, 8) as usize;
                defined.insert(
                    self.name(names + name as usize),
                    matches!(info & 15, 1 | 2).then_some(address),
                );
            }
        }
        defined
    }
}

fn found(found: &Found) -> Option<Option<usize>> {
    match found {
        Found::Nothing => None,
        Found::At(address) => Some(Some(*address as usize)),
        Found::Other => Some(None),
    }
}

/// Each defined name is found where it is, and others are not.
fn check(path: &Path, at_least: usize) {
    let image = Image::of(path);
    let (tables, defined) = (image.tables().expect("tables"), image.defined());
    assert!(defined.len() >= at_least, "{} names", defined.len());
    for (name, address) in &defined {
        assert_eq!(found(&tables.find(name, hash(name))), Some(*address), "{name:?}");
        let other = CString::new([name.to_bytes(), b"_"].concat()).expect("no zero");
        let expected = defined.get(&other).copied();
        assert_eq!(found(&tables.find(&other, hash(&other))), expected, "{other:?}");
    }
}

/// The file from which this process has a function.
fn file_of(function: *const libc::c_void) -> std::path::PathBuf {
    // SAFETY: zero is valid for it, and the name is a C string of the dynamic linker's.
    unsafe {
        let mut information: libc::Dl_info = std::mem::zeroed();
        assert_ne!(libc::dladdr(function, &raw mut information), 0);
        let name = CStr::from_ptr(information.dli_fname);
        name.to_str().expect("text").into()
    }
}

#[test]
fn hashes_are_those_of_the_format() {
    let known = [
        (c"", 0x1505),
        (c"printf", 0x156b_2bb8),
        (c"exit", 0x7c96_7e3f),
        (c"syscall", 0xbac2_12a0),
    ];
    for (name, value) in known {
        assert_eq!(hash(name), value, "{name:?}");
    }
}

/// With versions, some of them old, and with functions that choose themselves.
#[test]
fn each_name_of_glibc_is_found() {
    let libc = file_of(libc::getpid as *const _);
    if Image::of(&libc).entry(DT_HASH).is_none() {
        skip!("{} has no list of all symbols", libc.display());
    }
    check(&libc, 2000);
}

/// Without versions.
#[test]
fn each_name_of_musl_is_found() {
    let Some(linker) = ["x86_64", "aarch64"]
        .map(|machine| format!("/lib/ld-musl-{machine}.so.1"))
        .into_iter()
        .find(|path| Path::new(path).exists())
    else {
        skip!("no musl");
    };
    check(Path::new(&linker), 1000);
}

/// Links a library of two functions; `None` without a compiler.
fn linked(folder: &Path, source: &str, style: &str) -> Option<Image> {
    let (code, library) = (folder.join("code.c"), folder.join(format!("{style}.so")));
    fs::write(&code, source).expect("room");
    let style = format!("-Wl,--hash-style={style}");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-nostdlib", &style, "-o"]).args([&library, &code]);
    gcc.status().ok()?.success().then(|| Image::of(&library))
}

#[test]
fn tables_of_each_kind_are_recognized() {
    let folder = tempfile::tempdir().expect("room");
    let source = "int one(void) { return 1; }\nint two(void) { return 2; }\nint data = 3;\n";
    let Some(gnu) = linked(folder.path(), source, "gnu") else { skip!("no C compiler") };
    let tables = gnu.tables().expect("tables");
    for name in [c"one", c"two", c"data"] {
        assert!(matches!(tables.find(name, hash(name)), Found::At(_)), "{name:?}");
    }
    assert!(matches!(tables.find(c"three", hash(c"three")), Found::Nothing));
    let both = linked(folder.path(), source, "both").expect("as before");
    assert_eq!((both.tables().is_some(), both.defined().len() >= 3), (true, true));
    // The older table alone is left to dlsym, and so is a library without any.
    assert!(linked(folder.path(), source, "sysv").expect("as before").tables().is_none());
    let empty = linked(folder.path(), "static int none;\n", "gnu").expect("as before").tables();
    assert!(empty.is_none_or(|tables| matches!(tables.find(c"one", hash(c"one")), Found::Nothing)));
}

/// In this process, the first object with a name has what dlsym(3) finds.
#[test]
fn the_list_of_objects_is_searched_as_dlsym_does() {
    let names =
        [c"getpid", c"malloc", c"environ", c"_IO_file_read", c"pthread_create", c"_r_debug"];
    for name in names {
        let mut first = Found::Nothing;
        for_each(Scope::All, |tables| {
            if matches!(first, Found::Nothing) {
                first = tables.find(name, hash(name));
            }
        });
        // SAFETY: a C string.
        let known = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert_eq!(found(&first), Some(Some(known as usize)), "{name:?}");
    }
    // After this object, as RTLD_NEXT means it for a library: the program's own names are not found there.
    let (mut all, mut after) = (0, 0);
    for_each(Scope::All, |_| all += 1);
    for_each(Scope::AfterUs, |_| after += 1);
    assert!(all > after && after > 0, "{all} objects, {after} after us");
}
