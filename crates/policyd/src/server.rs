//! policyd's loop.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use discnice_external::hold;
use discnice_external::reactor::Reactor;
use discnice_sys::block::BlockId;
use discnice_sys::time;
use discnice_units::Nanos;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::activation;
use crate::keeper::Keeper;
use crate::place::{Only, Place};

/// A client that says nothing for so long is not listened to.
const PATIENCE: Duration = Duration::from_millis(100);

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Another one is there already.
    NotNeeded,
    /// It had nothing to do, or was asked to end.
    Done,
}

/// The right to be the only one; one that was just killed may keep it for a moment.
fn claim(place: &Place) -> io::Result<Option<Only>> {
    for _ in 0..20 {
        if let Some(only) = place.claim()? {
            return Ok(Some(only));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    place.claim()
}

/// Watches classes until there has been nothing to watch for `idle`. `first` is a class to begin with.
///
/// # Errors
/// There is no private runtime directory, or descriptors are short.
pub fn serve(first: Option<BlockId>, idle: Nanos) -> io::Result<End> {
    let passed = activation::passed();
    let place = Place::find()?;
    let Some(only) = claim(&place)? else { return Ok(End::NotNeeded) };
    let listener = passed.map_or_else(|| place.listen(&only), Ok)?;
    listener.set_nonblocking(true)?;
    raise_descriptors();
    hold::step_out();
    let mut reactor = Reactor::new()?;
    let mut keeper = Keeper::new();
    if let Some(block) = first {
        keeper.watch(block);
    }
    let mut busy_at = time::now();
    while !reactor.is_ended() {
        let next = keeper.step();
        let now = time::now();
        if !keeper.is_empty() {
            busy_at = now;
        } else if now >= busy_at.plus(idle) {
            break;
        }
        if reactor.wait(next.min(busy_at.plus(idle)), &[listener.as_fd()]) == [true] {
            answer_all(&listener, &mut keeper);
            busy_at = time::now();
        }
        keeper.tend();
    }
    Ok(End::Done)
}

/// A descriptor or two for each process that is watched.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Refused: then accounts are opened for each look.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn answer_all(listener: &UnixListener, keeper: &mut Keeper) {
    while let Ok((stream, _)) = listener.accept() {
        // A client that went away, or is too slow, gets no answer; what it asked for is done.
        let _ = answer(&stream, keeper);
    }
}

fn answer(mut stream: &UnixStream, keeper: &mut Keeper) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(io::Read::take(stream, 64)).read_line(&mut line)?;
    match line.trim_end().strip_prefix("watch ").and_then(block) {
        Some(block) if keeper.watch(block) => {
            keeper.step();
            writeln!(stream, "watching")
        }
        Some(block) => writeln!(stream, "no class in block {block:x}"),
        None => writeln!(stream, "say: watch BLOCK"),
    }
}

fn block(digits: &str) -> Option<BlockId> {
    u64::from_str_radix(digits, 16).ok().map(BlockId::from_claim)
}
