//! Copies and hashes file contents, holes and all.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;

/// Hash of a file's contents that does not depend on which of its zeros are holes.
pub type Hash = [u8; 32];

/// Bytes handled at a time; blocks of zeros of this size do not enter the hash.
const BLOCK: u64 = 64 << 10;

/// The next run of data at or after `from`: an empty range at the end if there is none. File
/// systems without holes say that all is data.
fn next_data(file: &File, from: u64, size: u64) -> io::Result<Range<u64>> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(start) => start.min(size),
        Err(Errno::NXIO) => size,
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(from..size),
        Err(error) => return Err(error.into()),
    };
    if start == size {
        return Ok(size..size);
    }
    Ok(start..rustix::fs::seek(file, SeekFrom::Hole(start))?.min(size))
}

/// Calls `each(offset, bytes)` for every block of the file that has data, in order. Blocks start
/// on multiples of their size.
fn each_block(
    file: &File,
    size: u64,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0u8; BLOCK as usize];
    let mut at = 0;
    while at < size {
        let data = next_data(file, at, size)?;
        if data.is_empty() {
            break;
        }
        at = data.start.max(at) / BLOCK * BLOCK;
        while at < data.end {
            let count = (size - at).min(BLOCK) as usize;
            file.read_exact_at(&mut buffer[..count], at)?;
            each(at, &buffer[..count])?;
            at += BLOCK;
        }
    }
    Ok(())
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

fn feed(hasher: &mut blake3::Hasher, offset: u64, block: &[u8]) {
    if !is_zero(block) {
        hasher.update(&offset.to_le_bytes());
        hasher.update(block);
    }
}

/// Writes the contents of `from` to the empty file `to`, holes as holes, and sends them on their
/// way to the disk, so that files are placed in the order of their writing. Returns the hash of
/// what was read.
///
/// # Errors
/// Of reading and writing; `UnexpectedEof` if the file shrinks meanwhile.
pub fn copy(from: &File, to: &File, size: u64) -> io::Result<Hash> {
    let _ = rustix::fs::fadvise(from, 0, None, Advice::Sequential);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    each_block(from, size, |offset, block| {
        feed(&mut hasher, offset, block);
        write_data(from, to, offset, block)
    })?;
    rustix::fs::ftruncate(to, size)?;
    super::raw::start_writing(to);
    Ok(*hasher.finalize().as_bytes())
}

/// Writes what of the block is data in the original.
fn write_data(from: &File, to: &File, offset: u64, block: &[u8]) -> io::Result<()> {
    let end = offset + block.len() as u64;
    let mut at = offset;
    while at < end {
        let data = next_data(from, at, end)?;
        if data.is_empty() {
            break;
        }
        let part = (data.start - offset) as usize..(data.end - offset) as usize;
        to.write_all_at(&block[part], data.start)?;
        at = data.end;
    }
    Ok(())
}

/// Hash of the contents as they are on the disk: clean cached pages are given up first.
///
/// # Errors
/// Of reading.
pub fn hash(file: &File, size: u64) -> io::Result<Hash> {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    each_block(file, size, |offset, block| {
        feed(&mut hasher, offset, block);
        Ok(())
    })?;
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn file_with(parts: &[(u64, usize)], size: u64) -> File {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for (offset, length) in parts {
            file.write_all_at(&vec![0xA5; *length], *offset).unwrap();
        }
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn holes_stay_holes_and_bytes_stay_bytes() {
        let size = 40 << 20;
        let from = file_with(&[(5, 10), (1 << 20, 4096), (20 << 20, 300_000)], size);
        let to = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let read = copy(&from, &to, size).unwrap();
        assert_eq!(hash(&to, size).unwrap(), read);
        let (mut one, mut other) = (vec![0; size as usize], vec![1; size as usize]);
        from.read_exact_at(&mut one, 0).unwrap();
        to.read_exact_at(&mut other, 0).unwrap();
        assert!(one == other);
        to.sync_all().unwrap();
        from.sync_all().unwrap();
        let blocks = |file: &File| file.metadata().unwrap().blocks();
        assert!(blocks(&to) <= blocks(&from), "{} > {}", blocks(&to), blocks(&from));
    }

    #[test]
    fn one_byte_changes_the_hash() {
        let (one, other) =
            (file_with(&[(0, 100_000)], 100_000), file_with(&[(0, 100_000)], 100_000));
        assert_eq!(hash(&one, 100_000).unwrap(), hash(&other, 100_000).unwrap());
        other.write_all_at(b"x", 99_999).unwrap();
        assert_ne!(hash(&one, 100_000).unwrap(), hash(&other, 100_000).unwrap());
    }
}
