//! The papers' own small programs (DiscNice sections 2.1 and 6.1), run as the user under test with
//! plain read and write calls.

pub mod paced;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;
use discnice_units::Bytes;

use crate::random::Random;
use paced::Paced;

/// Strides in bytes. DiscNice 6.1
const STEP: u64 = 12 * 1024;

/// A program to be measured
#[derive(Debug, Subcommand)]
pub enum Workload {
    /// Read a file from begin to end
    Sequential {
        file: PathBuf,
        #[arg(long, default_value = "64K")]
        block: Bytes,
    },
    /// Read blocks at random places
    Random {
        file: PathBuf,
        #[arg(long, default_value = "64K")]
        block: Bytes,
        #[arg(long)]
        reads: u64,
    },
    /// Read one byte every so many
    Stride {
        file: PathBuf,
        #[arg(long, default_value = "12K")]
        step: Bytes,
    },
    /// Create a file and fill it with the letter a
    Create {
        file: PathBuf,
        #[arg(long)]
        size: Bytes,
    },
    /// Write the same region of a file again and again
    RegionWrite {
        file: PathBuf,
        #[arg(long, default_value = "10K")]
        region: Bytes,
        #[arg(long)]
        times: u64,
    },
    /// Create and unlink a file again and again
    CreateDelete {
        file: PathBuf,
        #[arg(long, default_value = "10K")]
        size: Bytes,
        #[arg(long)]
        times: u64,
    },
    /// The four phases of DiscNice 6.2: read one file at random ten times and another with strides (or the other
    /// way round), write a region, create and unlink
    Phases {
        random: PathBuf,
        stride: PathBuf,
        made: PathBuf,
        #[arg(long)]
        times: u64,
        #[arg(long)]
        stride_first: bool,
    },
    /// Listen on this machine, write the address to a file, and send to the first client that
    /// connects
    Serve {
        address: PathBuf,
        /// Where to listen
        #[arg(long, default_value = "127.0.0.1")]
        on: IpAddr,
    },
    /// Send so many bytes to an address
    Send {
        to: SocketAddr,
        #[arg(long)]
        size: Bytes,
    },
    /// Compute on every page of so much memory, again and again; for good
    Touch {
        size: Bytes,
        /// So many milliseconds as fast as possible
        #[arg(long, default_value = "0")]
        eager: u64,
        /// From then on all of it in so many milliseconds
        #[arg(long, default_value = "0")]
        round: u64,
    },
    /// Read the files named in a list, one a line, in its order
    Files { list: PathBuf },
    /// Ask for something at regular times, and print how long each request took
    Paced(Paced),
}

impl Workload {
    /// Does the work.
    ///
    /// # Errors
    /// The first call that fails.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Sequential { file, block } => sequential(&file, &mut buffer(block)),
            Self::Random { file, block, reads } => random(&file, &mut buffer(block), reads),
            Self::Stride { file, step } => stride(&file, step.get()),
            Self::Create { file, size } => create(&file, size.get()),
            Self::RegionWrite { file, region, times } => {
                region_write(&file, &buffer(region), times)
            }
            Self::CreateDelete { file, size, times } => create_delete(&file, &buffer(size), times),
            Self::Phases { random, stride, made, times, stride_first } => {
                let strides = || self::stride(&stride, STEP);
                if stride_first {
                    strides()?;
                }
                again_and_again(&random)?;
                if !stride_first {
                    strides()?;
                }
                anew(&made, times)
            }
            Self::Serve { address, on } => serve(&address, on),
            Self::Send { to, size } => send(to, size.get()),
            Self::Touch { size, eager, round } => {
                touch(size, Duration::from_millis(eager), Duration::from_millis(round))
            }
            Self::Files { list } => files(&list),
            Self::Paced(requests) => requests.run(),
        }
    }
}

fn buffer(size: Bytes) -> Vec<u8> {
    vec![b'a'; size.get() as usize]
}

fn open(file: &PathBuf) -> anyhow::Result<File> {
    File::open(file).with_context(|| format!("cannot open {}", file.display()))
}

fn sequential(file: &PathBuf, buffer: &mut [u8]) -> anyhow::Result<()> {
    let mut input = open(file)?;
    while input.read(buffer)? > 0 {}
    Ok(())
}

fn random(file: &PathBuf, buffer: &mut [u8], reads: u64) -> anyhow::Result<()> {
    let mut input = open(file)?;
    let blocks = (input.metadata()?.len() / buffer.len() as u64).max(1);
    let mut random = Random::new(1);
    for _ in 0..reads {
        input.seek(SeekFrom::Start(random.below(blocks) * buffer.len() as u64))?;
        input.read_exact(buffer)?;
    }
    Ok(())
}

fn stride(file: &PathBuf, step: u64) -> anyhow::Result<()> {
    let mut input = open(file)?;
    let size = input.metadata()?.len();
    let mut place = 0;
    while place < size {
        input.seek(SeekFrom::Start(place))?;
        input.read_exact(&mut [0])?;
        place += step;
    }
    Ok(())
}

fn create(file: &PathBuf, size: u64) -> anyhow::Result<()> {
    write(File::create(file)?, size)
}

/// Writes so many bytes in blocks of 64 KiB.
fn write(mut output: impl Write, size: u64) -> anyhow::Result<()> {
    let block = buffer(Bytes::new(64 * 1024));
    let mut left = size;
    while left > 0 {
        let length = left.min(block.len() as u64);
        output.write_all(&block[..length as usize])?;
        left -= length;
    }
    Ok(())
}

fn region_write(file: &PathBuf, region: &[u8], times: u64) -> anyhow::Result<()> {
    let mut output = OpenOptions::new().write(true).open(file)?;
    for _ in 0..times {
        output.seek(SeekFrom::Start(0))?;
        output.write_all(region)?;
    }
    Ok(())
}

fn create_delete(file: &PathBuf, content: &[u8], times: u64) -> anyhow::Result<()> {
    for _ in 0..times {
        File::create(file)?.write_all(content)?;
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Reads a file at random, ten times as much as there is.
fn again_and_again(file: &PathBuf) -> anyhow::Result<()> {
    const BLOCK: u64 = 64 * 1024;
    let blocks = open(file)?.metadata()?.len() / BLOCK;
    random(file, &mut buffer(Bytes::new(BLOCK)), 10 * blocks)
}

/// Writes one region, then creates and unlinks, so many times.
fn anew(file: &PathBuf, times: u64) -> anyhow::Result<()> {
    let region = buffer(Bytes::new(10 * 1024));
    create(file, 0)?;
    region_write(file, &region, times)?;
    create_delete(file, &region, times)
}

fn serve(address: &PathBuf, on: IpAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind((on, 0)).context("cannot listen")?;
    fs::write(address, format!("{}\n", listener.local_addr()?))
        .context("cannot tell my address")?;
    let block = buffer(Bytes::new(16 * 1024));
    loop {
        let (mut client, _) = listener.accept()?;
        // Until it hangs up.
        while client.write_all(&block).is_ok() {}
    }
}

fn send(to: SocketAddr, size: u64) -> anyhow::Result<()> {
    write(TcpStream::connect(to).with_context(|| format!("cannot connect to {to}"))?, size)
}

fn touch(size: Bytes, eager: Duration, round: Duration) -> ! {
    const PAGE: usize = 4096;
    const PIECE: usize = 1 << 20;
    let begun = Instant::now();
    let mut memory = vec![1_u8; size.get() as usize];
    let pieces = memory.len().div_ceil(PIECE).max(1) as u32;
    loop {
        for piece in memory.chunks_mut(PIECE) {
            // Some microseconds of computing a page: a program that did nothing but touch would
            // give the kernel no time in which any page is old.
            for page in piece.chunks_mut(PAGE) {
                let mix = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
                page[0] = std::hint::black_box(page.iter().fold(1, mix) as u8);
            }
            if begun.elapsed() >= eager && !round.is_zero() {
                std::thread::sleep(round / pieces);
            }
        }
    }
}

fn files(list: &PathBuf) -> anyhow::Result<()> {
    let mut content = Vec::new();
    for line in fs::read_to_string(list)?.lines() {
        content.clear();
        open(&line.into())?.read_to_end(&mut content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(subcommand)]
        workload: Workload,
    }

    #[test]
    fn strides_are_the_papers_unless_told_otherwise() {
        let words = Words::try_parse_from(["workload", "stride", "file"]).map(|w| w.workload);
        assert!(matches!(words, Ok(Workload::Stride { step, .. }) if step.get() == STEP));
    }
}
