//! A C source tree, used if none is given: as much reading, computing and writing a file as in
//! programs of the papers' day, and no network.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::frame::experiment::Scale;
use crate::lab::{Lab, files};

/// Compiles quickly into an object of about this many bytes, beside its code.
const TABLE_BYTES: usize = 90_000;
const COMMENT_LINES: usize = 800;
const FUNCTIONS: usize = 12;

const MAKEFILE: &str = "OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))\n\
    library.o: $(OBJECTS)\n\
    \tld -r -o $@ $^\n\
    %.o: %.c\n\
    \tgcc -O1 -pipe -c -o $@ $<\n";

/// Where it lies.
#[must_use]
pub fn place(lab: &Lab) -> PathBuf {
    lab.memory().join("source-tree")
}

/// Generates it.
///
/// # Errors
/// Memory is full.
pub fn make(lab: &Lab, scale: Scale) -> anyhow::Result<()> {
    let folder = place(lab);
    fs::create_dir(&folder).context("cannot make a folder for sources")?;
    fs::write(folder.join("Makefile"), MAKEFILE).context("cannot write a Makefile")?;
    for number in 0..if scale.quick { 20 } else { 300 } {
        fs::write(folder.join(format!("part{number:03}.c")), source(number))
            .context("cannot write a source file")?;
    }
    files::give(lab, &folder)
}

/// One translation unit.
fn source(number: usize) -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for line in 0..COMMENT_LINES {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "/* line {line} of part {number}: what a programmer explains to others */"
        );
    }
    let _ = writeln!(text, "char table_{number}[{TABLE_BYTES}] = {{1}};");
    for function in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "int work_{number}_{function}(const char *s, int n) {{\n  int i, sum = {function};\n  \
             for (i = 0; i < n; i++) sum += s[i] * strlen(s + i) + atoi(s);\n  \
             return printf(\"%d\", sum) + table_{number}[sum & 1023];\n}}"
        );
    }
    text
}
