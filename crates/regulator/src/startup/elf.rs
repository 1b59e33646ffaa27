//! What an ELF file of this machine says about itself. elf(5)

use crate::startup::text::Text;
use crate::startup::{Bytes, number};

const MAGIC: &[u8; 4] = b"\x7fELF";
const CLASS_64: u8 = 2;
const MACHINE: u64 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const PT_NOTE: u64 = 4;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Sizes of a program header and of an entry of the dynamic section.
const SEGMENT: usize = 56;
const ENTRY: usize = 16;
/// No linker writes as many program headers, or as many entries, of which a few hundred name
/// libraries in the largest programs.
const SEGMENTS: u16 = 64;
const ENTRIES: u32 = 1024;
/// Program headers that are read at once: nearly always all of them, in what a thread with the
/// smallest stack has.
const AT_ONCE: u16 = 16;
/// Entries that are read at once: nearly always all that a library has.
const ENTRIES_AT_ONCE: usize = 32;
/// Length of a build id.
pub const BUILD_ID: usize = 20;
/// Segments of notes, and notes in one, that are looked at.
const NOTES: usize = 16;

/// A program or library.
#[derive(Debug)]
pub struct Elf {
    table: Table,
    /// End of what is loaded, as an offset in the file.
    pub end: u64,
    /// Offset of the dynamic section; none in a static program.
    dynamic: Option<u64>,
    /// Offset of the dynamic linker's path.
    interpreter: Option<u64>,
}

/// The part of a dynamic section that tells how to find what it needs.
#[derive(Debug, Clone, Copy)]
pub struct Dynamic {
    section: u64,
    /// Offset of the string table.
    strings: u64,
    /// Offset of the list of directories to search; `DT_RUNPATH` or the older `DT_RPATH`.
    pub run_path: Option<u64>,
}

/// Offset and number of the program headers.
#[derive(Debug, Clone, Copy)]
struct Table {
    at: u64,
    count: u16,
}

/// Walks program headers; ends early where the file does.
struct Segments<'a, B> {
    file: &'a B,
    table: Table,
    next: u16,
    /// The headers from the last multiple of [`AT_ONCE`] on.
    read: [u8; AT_ONCE as usize * SEGMENT],
}

impl Table {
    fn segments<B: Bytes>(self, file: &B) -> Segments<'_, B> {
        Segments { file, table: self, next: 0, read: [0; AT_ONCE as usize * SEGMENT] }
    }
}

impl<B: Bytes> Iterator for Segments<'_, B> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let left = self.table.count.checked_sub(self.next).filter(|left| *left > 0)?;
        let index = self.next % AT_ONCE;
        if index == 0 {
            let at = self.table.at.checked_add(u64::from(self.next) * SEGMENT as u64)?;
            let wanted = self.read.get_mut(..usize::from(left.min(AT_ONCE)) * SEGMENT)?;
            if self.file.read_at(at, wanted) < wanted.len() {
                self.next = self.table.count;
                return None;
            }
        }
        self.next += 1;
        let header = self.read.get(usize::from(index) * SEGMENT..)?;
        Some(Segment {
            kind: number::<4>(header, 0),
            offset: number::<8>(header, 8),
            address: number::<8>(header, 16),
            length: number::<8>(header, 32),
        })
    }
}

/// The entries of a dynamic section.
struct Entries<'a, B> {
    file: &'a B,
    section: u64,
    /// Which one was read first into `read`, and how many were.
    first: u32,
    count: u32,
    read: [u8; ENTRIES_AT_ONCE * ENTRY],
}

impl<'a, B: Bytes> Entries<'a, B> {
    fn new(file: &'a B, section: u64) -> Self {
        Self { file, section, first: 0, count: 0, read: [0; ENTRIES_AT_ONCE * ENTRY] }
    }

    /// Returns tag and value; `None` behind the end of the file.
    fn get(&mut self, index: u32) -> Option<(u64, u64)> {
        let is_read = index.checked_sub(self.first).is_some_and(|place| place < self.count);
        if !is_read {
            let at = self.section.checked_add(u64::from(index) * ENTRY as u64)?;
            self.first = index;
            self.count = (self.file.read_at(at, &mut self.read) / ENTRY) as u32;
        }
        let place = index.checked_sub(self.first).filter(|place| *place < self.count)?;
        let entry = self.read.get(place as usize * ENTRY..)?;
        Some((number::<8>(entry, 0), number::<8>(entry, 8)))
    }
}

/// One program header.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

impl Elf {
    /// Returns true if the file is an ELF file, of any machine.
    pub fn is_one(file: &impl Bytes) -> bool {
        file.array(0) == Some(*MAGIC)
    }

    /// Returns true if the header of an ELF file names this machine and its word size, or is cut
    /// short.
    pub fn is_of_this_machine(file: &impl Bytes) -> bool {
        file.array::<20>(0).is_none_or(|header| is_ours(&header))
    }

    /// Returns true if a dynamic linker loads it.
    pub fn is_dynamic(&self) -> bool {
        self.interpreter.is_some()
    }

    /// Returns true for a program in Go: it has a note by Go's linker (cmd/link/internal/ld/elf.go,
    /// `ELF_NOTE_GO_NAME`). Go's runtime makes its system calls itself even where it is linked with
    /// libc.
    pub fn is_go(&self, file: &impl Bytes) -> bool {
        let notes = self.table.segments(file).filter(|segment| segment.kind == PT_NOTE);
        notes.take(NOTES).any(|segment| note(file, &segment, b"Go\0\0", |_| true).is_some())
    }

    /// What the linker made of the content: the note of kind `NT_GNU_BUILD_ID`. ld(1), `--build-id`
    pub fn build_id(&self, file: &impl Bytes) -> Option<[u8; BUILD_ID]> {
        let mut notes = self.table.segments(file).filter(|segment| segment.kind == PT_NOTE);
        let found = notes.find_map(|segment| note(file, &segment, b"GNU\0", |kind| kind == 3));
        file.array(found.filter(|(_, length)| *length == BUILD_ID as u64)?.0)
    }

    /// Reads the headers; `None` for anything but a 64-bit ELF file of this machine.
    pub fn read(file: &impl Bytes) -> Option<Self> {
        let header: [u8; 64] = file.array(0)?;
        let known = header.starts_with(MAGIC)
            && is_ours(&header)
            && number::<2>(&header, 54) == SEGMENT as u64;
        if !known {
            return None;
        }
        let table = Table {
            at: number::<8>(&header, 32),
            count: (number::<2>(&header, 56) as u16).min(SEGMENTS),
        };
        let (mut end, mut dynamic, mut interpreter, mut count) = (0u64, None, None, 0);
        for segment in table.segments(file) {
            count += 1;
            match segment.kind {
                PT_LOAD => end = end.max(segment.offset.checked_add(segment.length)?),
                PT_DYNAMIC => dynamic = Some(segment.offset),
                PT_INTERP => interpreter = Some(segment.offset),
                _ => {}
            }
        }
        // One that is cut is not loaded.
        (count == table.count).then_some(Self { table, end, dynamic, interpreter })
    }

    /// Returns the offset in the file of what is loaded at this address.
    fn offset_of(&self, file: &impl Bytes, address: u64) -> Option<u64> {
        self.table.segments(file).find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let found = segment.kind == PT_LOAD && inside < segment.length;
            if found { segment.offset.checked_add(inside) } else { None }
        })
    }

    /// Puts the path of the dynamic linker into `path`; returns whether there is one.
    pub fn interpreter(&self, file: &impl Bytes, path: &mut Text) -> bool {
        self.interpreter.is_some_and(|at| string(file, at, path))
    }

    /// The dynamic section, of what has one.
    pub fn dynamic(&self, file: &impl Bytes) -> Option<Dynamic> {
        let section = self.dynamic?;
        let (mut strings, mut run_path, mut old_path) = (None, None, None);
        let mut entries = Entries::new(file, section);
        for index in 0..ENTRIES {
            let (tag, value) = entries.get(index)?;
            match tag {
                DT_NULL => break,
                DT_STRTAB => strings = Some(value),
                DT_RUNPATH => run_path = Some(value),
                DT_RPATH => old_path = Some(value),
                _ => {}
            }
        }
        let strings = self.offset_of(file, strings?)?;
        let run_path = run_path.or(old_path).and_then(|at| strings.checked_add(at));
        Some(Dynamic { section, strings, run_path })
    }
}

impl Dynamic {
    /// Puts the name of the first library that is needed according to entry `from` or a later one
    /// into `name`; returns the entry behind it.
    pub fn needed(&self, file: &impl Bytes, from: u32, name: &mut Text) -> Option<u32> {
        let mut entries = Entries::new(file, self.section);
        for index in from..ENTRIES {
            match entries.get(index)? {
                (DT_NULL, _) => return None,
                (DT_NEEDED, at) if string(file, self.strings.checked_add(at)?, name) => {
                    return Some(index + 1);
                }
                _ => {}
            }
        }
        None
    }
}

/// Returns true if a header names this machine and its word size.
fn is_ours(header: &[u8]) -> bool {
    header.get(4) == Some(&CLASS_64) && number::<2>(header, 18) == MACHINE
}

/// Finds the first note of a segment by this owner and of a wanted kind; returns the offset and
/// length of its content. elf(5), "Notes"
fn note(
    file: &impl Bytes,
    segment: &Segment,
    owner: &[u8; 4],
    is_wanted: impl Fn(u64) -> bool,
) -> Option<(u64, u64)> {
    let (mut at, end) = (segment.offset, segment.offset.saturating_add(segment.length));
    for _ in 0..NOTES {
        let note = file.array::<16>(at).filter(|_| at < end)?;
        let (name, rest) = (number::<4>(&note, 0), number::<4>(&note, 4));
        let kind = number::<4>(&note, 8);
        if name == owner.len() as u64 && note.ends_with(owner) && is_wanted(kind) {
            return Some((at.checked_add(16)?, rest));
        }
        at = at.saturating_add(12 + name.next_multiple_of(4) + rest.next_multiple_of(4));
    }
    None
}

/// Puts the string at an offset into `text`; returns whether there is a whole one.
pub fn string(file: &impl Bytes, at: u64, text: &mut Text) -> bool {
    let mut length = 0;
    text.fill(|buffer| {
        length = file.read_at(at, buffer);
        length
    });
    text.cut_at(|byte| byte == 0);
    let found = text.bytes().len();
    found > 0 && found < length
}

#[cfg(test)]
mod tests;
