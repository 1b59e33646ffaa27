use super::*;
use proptest::prelude::*;
use std::cell::Cell;

fn program() -> Vec<u8> {
    std::fs::read("/bin/sh").expect("a shell")
}

/// All that is ever asked of a file.
fn walk(file: &[u8]) -> Option<(Elf, Vec<Vec<u8>>)> {
    let (mut name, mut names, mut next) = (Text::new(), Vec::new(), 0);
    let elf = Elf::read(&file)?;
    elf.interpreter(&file, &mut name);
    if let Some(dynamic) = elf.dynamic(&file) {
        while let Some(behind) = dynamic.needed(&file, next, &mut name) {
            assert!(behind > next, "it goes on");
            names.push(name.bytes().to_vec());
            next = behind;
        }
    }
    Some((elf, names))
}

#[test]
fn a_real_program_names_its_libraries_and_its_linker() {
    let program = program();
    let (elf, names) = walk(&program).expect("a program of this machine");
    assert!(names.contains(&b"libc.so.6".to_vec()), "{names:?}");
    assert!(elf.end > 0 && elf.end <= program.len() as u64);
    let mut path = Text::new();
    assert!(elf.interpreter(&&program[..], &mut path));
    assert!(path.bytes().starts_with(b"/lib"));
}

/// Counts how often it is read.
struct Counted<'a>(&'a [u8], Cell<u32>);

impl Bytes for Counted<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.1.set(self.1.get() + 1);
        self.0.read_at(offset, buffer)
    }
}

#[test]
fn a_dynamic_section_is_read_by_blocks() {
    let program = program();
    let elf = Elf::read(&&program[..]).expect("a program of this machine");
    let file = Counted(&program, Cell::new(0));
    let dynamic = elf.dynamic(&file).expect("it is linked dynamically");
    let (mut name, mut libraries, mut next) = (Text::new(), 0, 0);
    while let Some(behind) = dynamic.needed(&file, next, &mut name) {
        libraries += 1;
        next = behind;
    }
    // The section in one or two blocks, the headers, and for each library the section from there on and its name.
    let reads = file.1.get();
    assert!(libraries > 0 && reads <= 3 + 3 * (libraries + 1), "{reads} reads");
}

proptest! {
    #[test]
    fn damaged_files_are_survived(
        damage in prop::collection::vec((0usize..4096, any::<u8>()), 1..40),
        far in prop::collection::vec((0.0..1.0f64, any::<u8>()), 0..40),
        length in 0.0..1.0f64,
    ) {
        let mut file = program();
        let size = file.len();
        for (at, byte) in damage {
            file[at] = byte;
        }
        for (place, byte) in far {
            file[(place * size as f64) as usize] = byte;
        }
        file.truncate((length * 2.0 * size as f64) as usize);
        walk(&file);
    }
}
